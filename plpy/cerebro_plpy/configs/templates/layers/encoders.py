"""Encoders of wide columns, one for each kind.

An encoder's output is concatenated with the numbers and the embedded categories of a network, so
every template can learn from a text, a series or an image; a template for such a kind does more
with it.

Vectors of words are initially near 0, so words that are seen once or never have no influence. In a
test with docstrings of packages, in which a model predicts the package, nothing else mattered as
much: normally distributed vectors reached an accuracy of 0.62, these 0.71. Dropping whole words in
training, maxima beside sums, and pairs of words did not help. A linear model rose from 0.69 to 0.73
with the rarity of words, pairs, and more word numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers import blocks, images, sequences
from cerebro_plpy.configs.templates.layers.keras_graph import Constant, Graph, Tensor, normal
from cerebro_plpy.configs.templates.layers.model_io import (
    FARTHEST,
    IMAGE,
    LONG_VECTOR,
    RARITIES,
    SERIES,
    TEXT,
    Table,
    Wide,
    wide_name,
)
from cerebro_plpy.configs.templates.template import Params

WORD_WIDTH = 32
"""Default width of the vector of a word."""
WORD_DEVIATION = 0.01
"""Standard deviation of words' vectors before training."""
WORD_RATE = 10.0
LINEAR_WORD_RATE = 3.0
"""Learning rates of words in `text` and in a linear model: few steps contain a given word."""
PAIRS_PER_WORD = 4
MAX_PAIRS = 1 << 18
MAX_PAIR_WEIGHTS = 1 << 22
"""Bounds of the number of pairs of words in a linear model."""
PAIR_FACTOR = 31_337
"""Factor of the first word in the hash of a pair; with word numbers below 2^16 it fits 32 bits."""
DENSE_UNITS = 256
"""Units of a usual layer after the elements of a long vector."""


class WordVectors(NamedTuple):
    """The vectors of words."""

    width: int
    deviation: float  # standard deviation before training
    rate: float  # factor of the learning rate


class Bag(NamedTuple):
    """The words of a text."""

    name: str  # of the table with their vectors
    words: Tensor
    weights: Tensor
    levels: int  # rows of the table with their vectors


Encoder = Callable[[Graph, int, Wide, Params], Tensor]


def encode_columns(graph: Graph, table: Table, params: Params) -> list[Tensor]:
    """Return the encoding of each wide column; these must be the last inputs of a graph."""
    return [
        ENCODERS[wide.kind](graph, number, wide, params)
        for number, wide in enumerate(table.wide, 1)
    ]


def encode_linear(graph: Graph, table: Table, units: int) -> list[Tensor]:
    """Return a linear function of each wide column for each unit, initially 0."""
    return [
        LINEAR_ENCODERS[wide.kind](graph, number, wide, units)
        for number, wide in enumerate(table.wide, 1)
    ]


def has_only_texts(table: Table) -> bool:
    """Return whether all columns of a table are texts."""
    if table.columns or table.cardinalities:
        return False
    return all(wide.kind == TEXT for wide in table.wide)


def estimate_weights(wide: Wide) -> int:
    """Return the approximate number of weights of a column's encoder."""
    if wide.levels:
        return wide.levels * WORD_WIDTH
    return {SERIES: sequences.WEIGHTS, IMAGE: images.WEIGHTS}.get(wide.kind, 0)


def count_linear_weights(wide: Wide, units: int) -> int:
    """Return the number of weights of a column in a linear model, but for biases."""
    columns = wide.elements
    if wide.levels:
        columns = wide.levels + _count_pair_levels(wide.levels, units)
    return columns * units


def estimate_work(wide: Wide) -> int:
    """Return the time of an encoder for a row, in weights of dense layers.

    It was measured with 128 rows in a batch. Words are looked up, and each step changes the weights
    of all words.
    """
    if wide.levels:
        return 20 * wide.elements * WORD_WIDTH + estimate_weights(wide) // 7
    if wide.kind == SERIES:
        return sequences.estimate_work(wide.shape)
    if wide.kind == IMAGE:
        return images.estimate_work(wide.shape)
    return wide.elements * DENSE_UNITS


def add_array_input(graph: Graph, number: int, wide: Wide) -> Tensor:
    """Add the input of an array; return it in its shape."""
    elements = _add_elements_input(graph, number, wide)
    shape = wide.shape
    return graph.layer("Reshape", f"array_{number}", elements, shape, target_shape=list(shape))


def _add_elements_input(graph: Graph, number: int, wide: Wide) -> Tensor:
    """Add the input of an array; return its clipped elements."""
    raw = graph.input(wide_name(number), (wide.elements,), wide.dtype)
    bounded = graph.operation("Clip", raw, x_min=-FARTHEST, x_max=FARTHEST)
    return blocks.smooth_clip(graph, bounded)


def _encode_vector(graph: Graph, number: int, wide: Wide, params: Params) -> Tensor:
    return _add_elements_input(graph, number, wide)


def _encode_series(graph: Graph, number: int, wide: Wide, params: Params) -> Tensor:
    series = add_array_input(graph, number, wide)
    return sequences.encode(graph, f"series_{number}", series, params)


def _encode_image(graph: Graph, number: int, wide: Wide, params: Params) -> Tensor:
    image = add_array_input(graph, number, wide)
    return images.encode(graph, f"image_{number}", image, params)


def _encode_linear_array(graph: Graph, number: int, wide: Wide, units: int) -> Tensor:
    """Return a linear function of the elements of an array of any kind."""
    x = _add_elements_input(graph, number, wide)
    return blocks.multiply_by_weights(graph, f"elements_{number}", x, units, normal(0.0))


def _encode_text(graph: Graph, number: int, wide: Wide, params: Params) -> Tensor:
    width = int(params.get("word", WORD_WIDTH))
    rate = float(params.get("word_rate", 1.0))
    words = _read_words(graph, number, wide)
    return _sum_vectors(graph, [words], WordVectors(width, WORD_DEVIATION, rate))


def _encode_linear_text(graph: Graph, number: int, wide: Wide, units: int) -> Tensor:
    """Return a linear function of words and of pairs of neighbouring words."""
    words = _read_words(graph, number, wide)
    bags = [words]
    if wide.shape[0] > 1:
        bags.append(_make_pairs(graph, f"pairs_{number}", words, units))
    return _sum_vectors(graph, bags, WordVectors(units, 0.0, LINEAR_WORD_RATE))


def _read_words(graph: Graph, number: int, wide: Wide) -> Bag:
    words = blocks.add_wide_input(graph, number, wide)
    return Bag(f"words_{number}", words, weigh_words(graph, wide, words), wide.levels)


def _sum_vectors(graph: Graph, bags: Sequence[Bag], vectors: WordVectors) -> Tensor:
    """Return the weighted sum of words' vectors, divided by the norm of the weights.

    The division keeps the length of the sum near that of a vector.
    """
    sums = [_sum_bag(graph, bag, vectors) for bag in bags]
    square_sums = []
    for bag in bags:
        squares = graph.operation("Square", bag.weights)
        square_sums.append(graph.operation("Sum", squares, shape=(1,), axis=1, keepdims=True))
    norm = graph.operation("Maximum", blocks.add_up(graph, square_sums), 1.0)
    inverse_root = graph.operation("Rsqrt", norm)
    total = blocks.add_up(graph, sums)
    return graph.multiply(total, graph.multiply(inverse_root, vectors.rate))


def _sum_bag(graph: Graph, bag: Bag, vectors: WordVectors) -> Tensor:
    initializer = normal(vectors.deviation / vectors.rate)
    size = (bag.levels, vectors.width)
    rows = blocks.embed(graph, bag.name, bag.words, size, initializer)
    shape = (*bag.weights.shape, 1)
    weights = graph.operation("ExpandDims", bag.weights, shape=shape, axis=-1)
    products = graph.multiply(rows, weights)
    return graph.reduce("Sum", products)


def _make_pairs(graph: Graph, name: str, bag: Bag, units: int) -> Bag:
    """Return the pairs of neighbouring words, with hashes as numbers and the words' mean weight."""
    levels = _count_pair_levels(bag.levels, units)
    first, second = _split_pairs(graph, bag.words)
    has_both = graph.operation("Sign", graph.operation("Minimum", first, second))
    mixed = graph.add(graph.multiply(first, PAIR_FACTOR), second)
    number = graph.add(graph.operation("Mod", mixed, levels), 1)
    mean = graph.multiply(graph.add(*_split_pairs(graph, bag.weights)), 0.5)
    weights = graph.multiply(mean, graph.multiply(has_both, 1.0, dtype="float32"))
    return Bag(name, graph.multiply(number, has_both), weights, levels + 1)


def _split_pairs(graph: Graph, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and the second element of each pair of neighbours."""
    shape = (x.shape[0] - 1,)
    first = graph.operation("GetItem", x, [slice(None), slice(None, -1)], shape=shape)
    second = graph.operation("GetItem", x, [slice(None), slice(1, None)], shape=shape)
    return first, second


def _count_pair_levels(levels: int, units: int) -> int:
    """Return the number of hashes of pairs of words, a power of two.

    >>> _count_pair_levels(257, 2), _count_pair_levels(65_537, 2), _count_pair_levels(65_537, 100)
    (1024, 262144, 32768)
    """
    pairs = min(PAIRS_PER_WORD * levels, MAX_PAIRS, MAX_PAIR_WEIGHTS // units)
    return 1 << (max(2, pairs).bit_length() - 1)


def weigh_words(graph: Graph, wide: Wide, words: Tensor) -> Tensor:
    """Return the weight of each word, 0 for no word.

    It is 1 + ln((1 + texts) / (1 + texts with the word)), or 1 if that is unknown: the inverse
    document frequency of scikit-learn's TfidfVectorizer.
    """
    mask = graph.multiply(graph.operation("Sign", words), 1.0, dtype="float32")
    if not wide.rarities:
        return mask
    rarity = graph.operation("Take", Constant((0, *wide.rarities), "int32"), words)
    logarithm = graph.multiply(rarity, math.log(2) / RARITIES, dtype="float32")
    return graph.multiply(mask, graph.add(logarithm, 1.0))


ENCODERS: Mapping[str, Encoder] = {
    TEXT: _encode_text,
    LONG_VECTOR: _encode_vector,
    SERIES: _encode_series,
    IMAGE: _encode_image,
}
LINEAR_ENCODERS: Mapping[str, Callable[[Graph, int, Wide, int], Tensor]] = {
    TEXT: _encode_linear_text,
    LONG_VECTOR: _encode_linear_array,
    SERIES: _encode_linear_array,
    IMAGE: _encode_linear_array,
}
