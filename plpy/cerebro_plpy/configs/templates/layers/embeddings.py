"""How the columns of a table become what the layers of a network take: numbers in two ways,
categories by their levels.

The periodic embeddings are those of Holzmüller, Grinsztajn and Steinwart, "Better by Default"
(2024): a number is kept, and beside it stands what a small layer makes of its waves, whose
frequencies are learned. The piecewise ones are those of Gorishniy, Rubachev and Babenko, "On
Embeddings for Numerical Features" (2022), section 3.2, without a layer of their own: beside a
number stands of each piece of its range how much of it lies below the number. What they can tell of
numbers was learned beforehand, so they need less training, and make steps where a table has some.
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
PERIODIC = 3
"""Numbers that a number's frequencies come to; it is kept beside them."""
EMBEDDING = 8
"""Numbers that a category's level comes to."""
FREQUENCY = Field(
    "frequency", "How fast numbers' waves are", 0.1, Range(0.01, 50.0, "log"), limits=(1e-6, 1e3)
)
"""The same field in every template that has waves."""


PERIODICALLY, PIECEWISE = "periodic", "piecewise"
NUMBERS = Field(
    "numbers",
    "What stands beside a number: waves of it, or how much of each piece of its range lies below "
    "it",
    PERIODICALLY,
    Choices((PERIODICALLY, PIECEWISE)),
    words=(PERIODICALLY, PIECEWISE),
)
"""The same field in every template that embeds numbers."""


@dataclass(frozen=True)
class Waves:
    """How fast the waves of numbers are before training, and how fast they learn, in the learning
    rate.
    """

    frequency: float
    rate: float = 1.0


def columns(graph: Graph, table: Table, waves: Waves, params: Params) -> Tensor:
    """All columns beside each other: numbers and what tells more of them, indicators as they are,
    others as vectors.
    """
    found = [
        *numbers(graph, table, None if params[NUMBERS.name] == PIECEWISE else waves),
        *categories(graph, table),
    ]
    return blocks.joined(graph, [*found, *encoders.encoded(graph, table, params)])


def plain_columns(graph: Graph, table: Table, params: Params) -> Tensor:
    """All columns beside each other: numbers and indicators without waves, others as vectors."""
    given = blocks.numbers_input(graph, table)
    found = [] if given is None else [blocks.smooth_clip(graph, given)]
    found += [*categories(graph, table), *encoders.encoded(graph, table, params)]
    return blocks.joined(graph, found)


def numbers(graph: Graph, table: Table, waves: Waves | None) -> list[Tensor]:
    """What numbers come to, by waves or by pieces, and indicators as they are."""
    given = blocks.numbers_input(graph, table)
    if given is None:
        return []
    x = blocks.smooth_clip(graph, given)
    if not table.numbers:
        return [x]
    wanted = (
        _columns(graph, x, slice(None, table.numbers), table.numbers) if table.indicators else x
    )
    found = (
        [wanted, *_piecewise(graph, given, table)]
        if waves is None
        else [_periodic(graph, wanted, waves)]
    )
    return (
        [*found, _columns(graph, x, slice(table.numbers, None), table.indicators)]
        if table.indicators
        else found
    )


def categories(graph: Graph, table: Table) -> list[Tensor]:
    """The vectors of all categories' levels, beside each other; none where the table has no
    category.
    """
    codes = blocks.codes_input(graph, table)
    if codes is None:
        return []
    found = blocks.looked_up(
        graph, "levels", table, blocks.places(graph, table, codes), EMBEDDING, normal(1.0)
    )
    return [_flat(graph, "levels_flat", found)]


def _columns(graph: Graph, x: Tensor, which: slice, count: int) -> Tensor:
    return graph.operation("GetItem", x, [slice(None), which], shape=(count,))


def _periodic(graph: Graph, x: Tensor, waves: Waves) -> Tensor:
    """Each number z, and A·cos(2π·w·z + b) + c beside it, with w, b, A and c of its own."""
    (count,) = x.shape
    turns = blocks.times(graph, "turns", x, 2 * math.pi)
    begin = normal(waves.frequency / waves.rate), uniform(math.pi / waves.rate)
    angles = blocks.lines(graph, "waves", turns, begin, FREQUENCIES)
    cosines = graph.operation("Cos", graph.operation("Multiply", angles, waves.rate))
    mixed = graph.layer(
        "EinsumDense",
        "periodic",
        cosines,
        (count, PERIODIC),
        equation="bfh,fho->bfo",
        output_shape=[count, PERIODIC],
        bias_axes="fo",
        kernel_initializer=uniform(1 / (math.sqrt(FREQUENCIES) * waves.rate)),
        bias_initializer=uniform(1 / (math.sqrt(FREQUENCIES) * waves.rate)),
    )
    own = graph.operation("ExpandDims", x, shape=(count, 1), axis=-1)
    both = [own, graph.operation("Multiply", mixed, waves.rate)]
    beside = graph.operation(
        "Concatenate", both, shape=(count, 1 + PERIODIC), dtype="float32", axis=-1
    )
    return _flat(graph, "numbers_flat", beside)


def _piecewise(graph: Graph, given: Tensor, table: Table) -> list[Tensor]:
    """Of each piece of each number's range how much of it lies below: from 0 to 1."""
    each = [
        (place, *ends) for place, edges in enumerate(table.pieces) for ends in zip(edges, edges[1:])
    ]
    if not each:
        return []
    numbers = Constant(tuple(place for place, _, _ in each), "int32")
    own = graph.operation("Take", given, numbers, shape=(len(each),), axis=1)
    above = graph.operation("Subtract", own, Constant(tuple(low for _, low, _ in each)))
    share = graph.operation(
        "Multiply", above, Constant(tuple(1 / (high - low) for _, low, high in each))
    )
    return [graph.operation("Clip", share, x_min=0.0, x_max=1.0)]


def _flat(graph: Graph, name: str, x: Tensor) -> Tensor:
    return graph.layer("Flatten", name, x, (math.prod(x.shape),))
