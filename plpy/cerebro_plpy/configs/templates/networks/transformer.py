"""The template `transformer`: each column is a token, and tokens attend to each other, as in the
FT-Transformer.

As described by Gorishniy and others, "Revisiting Deep Learning Models for Tabular Data" (2021). Its
default width is a third of theirs, since a step takes as many times as long as there are columns.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.layers import blocks, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, uniform
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template

HEADS = 8
WIDER = 4 / 3
"""Units between the two layers after attention, for each of the width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(TRANSFORMER.name)
    tokens = _tokens(graph, table, params)
    for number in range(int(params["depth"])):
        tokens = _block(graph, number, tokens, params)
    first = _token(graph, tokens, 0)
    y = graph.layer("LayerNormalization", "last_normal", first, first.shape)
    y = graph.layer("Activation", "last_relu", y, y.shape, activation="relu")
    raw = graph.layer("Dense", "out", y, (head.units,), units=head.units)
    return graph.text(blocks.prediction(graph, raw, head))


def _tokens(graph: Graph, table: Table, params: Params) -> Tensor:
    """A token that gathers what is predicted, and one of each number, indicator, category, and
    input of its own.
    """
    width = int(params["width"])
    begin = uniform(1 / math.sqrt(width))
    found: list[Tensor] = []
    given = blocks.numbers_input(graph, table)
    if given is not None:
        found.append(
            blocks.lines(graph, "tokens", blocks.smooth_clip(graph, given), (begin, begin), width)
        )
    codes = blocks.codes_input(graph, table)
    if codes is not None:
        levels = blocks.looked_up(
            graph, "levels", table, blocks.places(graph, table, codes), width, begin
        )
        found.append(levels)
    for place, wide in enumerate(encoders.encoded(graph, table, params), 1):
        token = graph.layer("Dense", f"token_{place}", wide, (width,), units=width)
        found.append(graph.operation("ExpandDims", token, shape=(1, width), axis=1))
    return _gathered(graph, found, width)


def _gathered(graph: Graph, found: list[Tensor], width: int) -> Tensor:
    """The tokens of columns, behind one that is the same for all rows."""
    count = 1 + sum(tokens.shape[0] for tokens in found)
    nothing = graph.operation("Multiply", _token(graph, found[0], 0), 0.0)
    own = blocks.weights(graph, "gathering", nothing, (width,), uniform(1 / math.sqrt(width)))
    first = graph.operation(
        "ExpandDims", graph.operation("Add", nothing, own), shape=(1, width), axis=1
    )
    return graph.operation(
        "Concatenate", [first, *found], shape=(count, width), dtype="float32", axis=1
    )


def _token(graph: Graph, tokens: Tensor, place: int) -> Tensor:
    return graph.operation("GetItem", tokens, [slice(None), place], shape=tokens.shape[1:])


def _block(graph: Graph, number: int, x: Tensor, params: Params) -> Tensor:
    width = int(params["width"])
    config = {
        "num_heads": HEADS,
        "key_dim": -(-width // HEADS),
        "dropout": float(params["attention_dropout"]),
    }
    y = graph.layer("LayerNormalization", f"before_{number}", x, x.shape)
    y = graph.layer("MultiHeadAttention", f"attention_{number}", (y, y), x.shape, **config)
    x = graph.operation("Add", x, y)
    y = graph.layer("LayerNormalization", f"between_{number}", x, x.shape)
    y = blocks.dropped(
        graph, f"dropout_{number}", _gated(graph, number, y), float(params["dropout"])
    )
    y = graph.layer("Dense", f"narrow_{number}", y, x.shape, units=width)
    return graph.operation("Add", x, y)


def _gated(graph: Graph, number: int, x: Tensor) -> Tensor:
    """A layer, times another that is bent."""
    count, width = x.shape
    units = math.ceil(WIDER * width)
    wide = graph.layer("Dense", f"wider_{number}", x, (count, units), units=units)
    gate = graph.layer("Dense", f"gate_{number}", x, (count, units), units=units, activation="relu")
    return graph.operation("Multiply", wide, gate)


TRANSFORMER = Template(
    name="transformer",
    meaning="Columns that attend to each other",
    fields=(
        Field("lr", "The learning rate", 3e-4, Range(1e-5, 3e-3, "log"), limits=(1e-8, 100.0)),
        *FIT_FIELDS,
        Field(
            "weight_decay",
            "How fast weights shrink, times lr",
            1e-5,
            Range(1e-6, 0.1, "log"),
            limits=(0.0, 10.0),
        ),
        Field(
            "dropout",
            "The share of units left out",
            0.1,
            Range(0.0, 0.5, "linear"),
            limits=(0.0, 0.95),
        ),
        Field(
            "width",
            "Numbers of a token",
            64,
            Choices((64, 96, 128, 192)),
            limits=(1, 65_536),
            whole=True,
        ),
        Field(
            "depth",
            "Layers that attend",
            3,
            Range(1, 4, "linear", whole=True),
            limits=(1, 16),
            whole=True,
        ),
        Field(
            "attention_dropout",
            "The share of attention left out",
            0.2,
            Range(0.0, 0.5, "linear"),
            limits=(0.0, 0.95),
        ),
    ),
    architecture=_architecture,
    optimizer={"learning_rate": "lr", "weight_decay": "weight_decay"},
)
