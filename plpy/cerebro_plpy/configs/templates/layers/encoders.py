"""Columns that are inputs of their own, as what the layers of a network take: an encoder for each
kind of them.

What a column comes to stands beside what its network makes of numbers and codes. So a text, a
series or an image is learned from by every template; one that is made for them does more with them.
In that for texts the vectors of words learn faster.

Words' vectors begin near 0: what was seen once or never has no say then. Over docstrings of
packages, by which a model was to tell the package, nothing else mattered as much: vectors that
begin as normal numbers came to 0.62 of the answers right, these to 0.71. That whole words are
dropped in training, maxima beside sums, and pairs of words did not help. A linear model came from
0.69 to 0.73 by how rare words are, by pairs, and by more numbers for words.
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

WORD = 32
"""Numbers that a word comes to, where a template does not say it."""
BEGIN = 0.01
"""The standard deviation of words' vectors before training."""
WORD_RATE, LINEAR_RATE = 10.0, 3.0
"""How fast the weights of words learn in `text`, and in a linear model: most steps say nothing of a
word.
"""
PAIRS_A_WORD, MOST_PAIRS, PAIR_WEIGHTS = 4, 1 << 18, 1 << 22
"""Numbers that pairs of words may have: for each that words have, at most, and with all weights of
a linear model.
"""
PAIR_FACTOR = 31_337
"""Of the first word of a pair, in its hash; of a number below 2^16 it fits into 32 bits."""
DENSE = 256
"""Units of a usual layer behind the elements of a long vector."""


class Vectors(NamedTuple):
    """How wide the vectors of words are, how they begin, and how fast they learn."""

    width: int
    begin: float
    rate: float


class Bag(NamedTuple):
    """The words of a text, with what each weighs, and the name of their vectors, of which there are
    so many.
    """

    name: str
    words: Tensor
    weight: Tensor
    levels: int


Encoder = Callable[[Graph, int, Wide, Params], Tensor]


def encoded(graph: Graph, table: Table, params: Params) -> list[Tensor]:
    """What each of these columns comes to: so many numbers of a row. They are the last inputs that
    a graph is given.
    """
    return [
        ENCODERS[wide.kind](graph, place, wide, params) for place, wide in enumerate(table.wide, 1)
    ]


def weighed(graph: Graph, table: Table, units: int) -> list[Tensor]:
    """The same for a linear model: a sum of weights, which begin at 0, for each unit of each
    column.
    """
    return [
        WEIGHED[wide.kind](graph, place, wide, units) for place, wide in enumerate(table.wide, 1)
    ]


def texts_alone(table: Table) -> bool:
    """Whether a table has nothing but texts."""
    return all(wide.kind == TEXT for wide in table.wide) and not (
        table.columns or table.cardinalities
    )


def weights(wide: Wide) -> int:
    """About how many weights a column's encoder has."""
    if wide.levels:
        return wide.levels * WORD
    return {SERIES: sequences.WEIGHTS, IMAGE: images.WEIGHTS}.get(wide.kind, 0)


def weights_of_line(wide: Wide, units: int) -> int:
    """The same for a linear model of so many units."""
    return (
        wide.levels + _pair_levels(wide.levels, units) if wide.levels else wide.elements
    ) * units


def work(wide: Wide) -> int:
    """About how many weights of dense layers take as long for a row, as measured with 128 rows in a
    batch.

    Words are looked up, and all weights of words change in each step.
    """
    if wide.levels:
        return 20 * wide.elements * WORD + weights(wide) // 7
    if wide.kind == SERIES:
        return sequences.work(wide.shape)
    return images.work(wide.shape) if wide.kind == IMAGE else wide.elements * DENSE


def _elements(graph: Graph, place: int, wide: Wide) -> Tensor:
    """The elements of an array beside each other."""
    given = graph.input(wide_name(place), (wide.elements,), wide.dtype)
    return blocks.smooth_clip(
        graph, graph.operation("Clip", given, x_min=-FARTHEST, x_max=FARTHEST)
    )


def _array(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    return _elements(graph, place, wide)


def _series(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    return sequences.encoded(graph, f"series_{place}", shaped(graph, place, wide), params)


def _image(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    return images.encoded(graph, f"image_{place}", shaped(graph, place, wide), params)


def shaped(graph: Graph, place: int, wide: Wide) -> Tensor:
    """The elements of an array in its shape."""
    shape = wide.shape
    return graph.layer(
        "Reshape", f"array_{place}", _elements(graph, place, wide), shape, target_shape=list(shape)
    )


def _weighed_array(graph: Graph, place: int, wide: Wide, units: int) -> Tensor:
    """The arrays of whatever kind as a line sees them: their elements, each with a weight of its
    own.
    """
    x = _elements(graph, place, wide)
    config = {"units": units, "use_bias": False, "kernel_initializer": normal(0.0)}
    return graph.layer("Dense", f"elements_{place}", x, (units,), **config)


def _text(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    vectors = Vectors(int(params.get("word", WORD)), BEGIN, float(params.get("word_rate", 1.0)))
    return _summed(graph, [_words(graph, place, wide)], vectors)


def _weighed_text(graph: Graph, place: int, wide: Wide, units: int) -> Tensor:
    """Words, and beside them the pairs of words that follow each other, which a line cannot make of
    words itself.
    """
    words = _words(graph, place, wide)
    bags = [words, _pairs(graph, f"pairs_{place}", words, units)] if wide.shape[0] > 1 else [words]
    return _summed(graph, bags, Vectors(units, 0.0, LINEAR_RATE))


def _words(graph: Graph, place: int, wide: Wide) -> Bag:
    words = blocks.wide_input(graph, place, wide)
    return Bag(f"words_{place}", words, word_weights(graph, wide, words), wide.levels)


def _summed(graph: Graph, bags: Sequence[Bag], vectors: Vectors) -> Tensor:
    """The weighted sum of what all words of a text come to, divided by the weights' norm: as far
    from 0 as each.
    """
    sums = [_total(graph, bag, vectors) for bag in bags]
    squares = [
        graph.operation(
            "Sum", graph.operation("Square", bag.weight), shape=(1,), axis=1, keepdims=True
        )
        for bag in bags
    ]
    root = graph.operation("Rsqrt", graph.operation("Maximum", blocks.added(graph, squares), 1.0))
    return graph.operation(
        "Multiply", blocks.added(graph, sums), graph.operation("Multiply", root, vectors.rate)
    )


def _total(graph: Graph, bag: Bag, vectors: Vectors) -> Tensor:
    begin = normal(vectors.begin / vectors.rate)
    found = blocks.embedded(graph, bag.name, bag.words, (bag.levels, vectors.width), begin)
    own = graph.operation("ExpandDims", bag.weight, shape=(*bag.weight.shape, 1), axis=-1)
    return graph.operation(
        "Sum",
        graph.operation("Multiply", found, own),
        shape=(vectors.width,),
        axis=1,
        keepdims=False,
    )


def _pairs(graph: Graph, name: str, bag: Bag, units: int) -> Bag:
    """The pairs of neighbours, each with one of some numbers by a hash, and the mean of what both
    words weigh.
    """
    count = bag.words.shape[0] - 1
    former, latter = slice(None, -1), slice(1, None)
    levels = _pair_levels(bag.levels, units)
    first, second = (_part(graph, bag.words, which, count) for which in (former, latter))
    there = graph.operation("Sign", graph.operation("Minimum", first, second))
    mixed = graph.operation("Add", graph.operation("Multiply", first, PAIR_FACTOR), second)
    number = graph.operation("Add", graph.operation("Mod", mixed, levels), 1)
    weights = [_part(graph, bag.weight, which, count) for which in (former, latter)]
    mean = graph.operation("Multiply", graph.operation("Add", *weights), 0.5)
    own = graph.operation(
        "Multiply", mean, graph.operation("Multiply", there, 1.0, dtype="float32")
    )
    return Bag(name, graph.operation("Multiply", number, there), own, levels + 1)


def _pair_levels(levels: int, units: int) -> int:
    """How many numbers the pairs of so many words have; a power of two.

    >>> _pair_levels(257, 2), _pair_levels(65_537, 2), _pair_levels(65_537, 100)
    (1024, 262144, 32768)
    """
    return 1 << (
        max(2, min(PAIRS_A_WORD * levels, MOST_PAIRS, PAIR_WEIGHTS // units)).bit_length() - 1
    )


def _part(graph: Graph, x: Tensor, which: slice, count: int) -> Tensor:
    return graph.operation("GetItem", x, [slice(None), which], shape=(count,))


def word_weights(graph: Graph, wide: Wide, words: Tensor) -> Tensor:
    """What each word weighs: 1 + ln((1 + texts) / (1 + texts that have it)), or 1 where that is not
    known; 0 for none.

    It is the inverse document frequency of scikit-learn's TfidfVectorizer.
    """
    there = graph.operation("Multiply", graph.operation("Sign", words), 1.0, dtype="float32")
    if not wide.rarities:
        return there
    rarity = graph.operation("Take", Constant((0, *wide.rarities), "int32"), words)
    more = graph.operation("Multiply", rarity, math.log(2) / RARITIES, dtype="float32")
    return graph.operation("Multiply", there, graph.operation("Add", more, 1.0))


ENCODERS: Mapping[str, Encoder] = {TEXT: _text, LONG_VECTOR: _array, SERIES: _series, IMAGE: _image}
WEIGHED: Mapping[str, Callable[[Graph, int, Wide, int], Tensor]] = {
    TEXT: _weighed_text,
    **dict.fromkeys((LONG_VECTOR, SERIES, IMAGE), _weighed_array),
}
