"""The columns of a table as inputs of layers: numbers in two ways, and categories by their codes.

The periodic embeddings are those of Holzmüller, Grinsztajn and Steinwart, "Better by Default"
(2024): a small layer learns from waves of a number, whose frequencies are learned too, and its
outputs are added beside the number. The piecewise ones are those of Gorishniy, Rubachev and
Babenko, "On Embeddings for Numerical Features" (2022), section 3.2, without a layer of their own:
for each piece of a number's range, the share of the piece that lies below the number is added. The
pieces are learned before training, so these embeddings need less training, and can represent steps.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.layers import blocks, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import (
    Constant,
    Graph,
    Tensor,
    normal,
    uniform,
)
from cerebro_plpy.configs.templates.layers.model_io import Table
from cerebro_plpy.configs.templates.template import Field, Params
from cerebro_plpy.records import dataclass

FREQUENCIES = 16
PERIODIC_WIDTH = 3
"""Width of the periodic embedding of a number, beside the number itself."""
CATEGORY_WIDTH = 8
"""Width of the embedding of a category."""
FREQUENCY = Field(
    "frequency", "How fast numbers' waves are", 0.1, Range(0.01, 50.0, "log"), limits=(1e-6, 1e3)
)
"""The same field in every template that has waves."""
PERIODIC = "periodic"
PIECEWISE = "piecewise"
NUMBERS = Field(
    "numbers",
    "What stands beside a number: waves of it, or how much of each piece of its range lies below "
    "it",
    PERIODIC,
    Choices((PERIODIC, PIECEWISE)),
    words=(PERIODIC, PIECEWISE),
)
"""The same field in every template that embeds numbers."""


@dataclass(frozen=True)
class Waves:
    """The waves of periodic embeddings."""

    frequency: float  # scale of the frequencies before training
    rate: float = 1.0  # factor of the learning rate


def embed_columns(graph: Graph, table: Table, waves: Waves, params: Params) -> Tensor:
    """Return all columns: embedded numbers, indicators, embedded categories, and wide columns."""
    number_waves = None if params[NUMBERS.name] == PIECEWISE else waves
    parts = [
        *embed_numbers(graph, table, number_waves),
        *_embed_categories(graph, table),
        *encoders.encode_columns(graph, table, params),
    ]
    return blocks.concatenate(graph, parts)


def plain_columns(graph: Graph, table: Table, params: Params) -> Tensor:
    """Return all columns like `embed_columns`, but with plain numbers."""
    parts = []
    raw = blocks.add_numbers_input(graph, table)
    if raw is not None:
        parts.append(blocks.smooth_clip(graph, raw))
    parts += _embed_categories(graph, table)
    parts += encoders.encode_columns(graph, table, params)
    return blocks.concatenate(graph, parts)


def embed_numbers(graph: Graph, table: Table, waves: Waves | None) -> list[Tensor]:
    """Return numbers with periodic or piecewise embeddings, and plain indicators.

    Args:
        waves: None for piecewise embeddings.
    """
    raw = blocks.add_numbers_input(graph, table)
    if raw is None:
        return []
    x = blocks.smooth_clip(graph, raw)
    if not table.numbers:
        return [x]
    numbers = x
    if table.indicators:
        numbers = _select_columns(graph, x, slice(None, table.numbers), table.numbers)
    if waves is None:
        parts = [numbers, *_embed_piecewise(graph, raw, table)]
    else:
        parts = [_embed_periodic(graph, numbers, waves)]
    if table.indicators:
        parts.append(_select_columns(graph, x, slice(table.numbers, None), table.indicators))
    return parts


def _embed_categories(graph: Graph, table: Table) -> list[Tensor]:
    """Return the embeddings of all categories; [] if the table has none."""
    codes = blocks.add_codes_input(graph, table)
    if codes is None:
        return []
    rows = blocks.offset_codes(graph, table, codes)
    vectors = blocks.embed_codes(graph, "levels", table, rows, CATEGORY_WIDTH, normal(1.0))
    return [_flatten(graph, "levels_flat", vectors)]


def _select_columns(graph: Graph, x: Tensor, columns: slice, count: int) -> Tensor:
    return graph.operation("GetItem", x, [slice(None), columns], shape=(count,))


def _embed_periodic(graph: Graph, x: Tensor, waves: Waves) -> Tensor:
    """Return each number z with A·cos(2π·w·z + b) + c; each has its own w, b, A and c."""
    (count,) = x.shape
    turns = blocks.rescale(graph, "turns", x, 2 * math.pi)
    initializers = normal(waves.frequency / waves.rate), uniform(math.pi / waves.rate)
    angles = blocks.add_lines(graph, "waves", turns, initializers, FREQUENCIES)
    cosines = graph.operation("Cos", graph.multiply(angles, waves.rate))
    limit = 1 / (math.sqrt(FREQUENCIES) * waves.rate)
    mixed = graph.layer(
        "EinsumDense",
        "periodic",
        cosines,
        (count, PERIODIC_WIDTH),
        equation="bfh,fho->bfo",
        output_shape=[count, PERIODIC_WIDTH],
        bias_axes="fo",
        kernel_initializer=uniform(limit),
        bias_initializer=uniform(limit),
    )
    numbers = graph.operation("ExpandDims", x, shape=(count, 1), axis=-1)
    parts = [numbers, graph.multiply(mixed, waves.rate)]
    shape = (count, 1 + PERIODIC_WIDTH)
    embedded = graph.operation("Concatenate", parts, shape=shape, dtype="float32", axis=-1)
    return _flatten(graph, "numbers_flat", embedded)


def _embed_piecewise(graph: Graph, raw: Tensor, table: Table) -> list[Tensor]:
    """Return the share of each piece of each number's range that lies below the number."""
    pieces = [
        (column, low, high)
        for column, edges in enumerate(table.pieces)
        for low, high in zip(edges, edges[1:])
    ]
    if not pieces:
        return []
    columns, lows, highs = zip(*pieces)
    inverse_lengths = tuple(1 / (high - low) for low, high in zip(lows, highs))
    numbers = graph.operation("Take", raw, Constant(columns, "int32"), shape=(len(pieces),), axis=1)
    lengths_below = graph.subtract(numbers, Constant(lows))
    shares = graph.multiply(lengths_below, Constant(inverse_lengths))
    return [graph.operation("Clip", shares, x_min=0.0, x_max=1.0)]


def _flatten(graph: Graph, name: str, x: Tensor) -> Tensor:
    return graph.layer("Flatten", name, x, (math.prod(x.shape),))
