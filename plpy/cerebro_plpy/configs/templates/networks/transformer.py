"""The template `transformer`, an FT-Transformer: columns are tokens that attend to each other.

As described by Gorishniy and others, "Revisiting Deep Learning Models for Tabular Data" (2021). Its
default width is a third of theirs, because the time of a step is proportional to the columns.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.layers import blocks, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, uniform
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template

HEADS = 8
HIDDEN_FACTOR = 4 / 3
"""Units of the hidden layer after attention, in multiples of the width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(TRANSFORMER.name)
    tokens = _make_tokens(graph, table, params)
    for number in range(int(params["depth"])):
        tokens = _add_block(graph, number, tokens, params)
    first = _first_token(graph, tokens)
    y = graph.layer("LayerNormalization", "last_normal", first, first.shape)
    y = graph.layer("Activation", "last_relu", y, y.shape, activation="relu")
    raw = graph.layer("Dense", "out", y, (head.units,), units=head.units)
    return graph.to_json(blocks.add_prediction(graph, raw, head))


def _make_tokens(graph: Graph, table: Table, params: Params) -> Tensor:
    """Return a token for the prediction, and one for each column."""
    width = int(params["width"])
    initializer = uniform(1 / math.sqrt(width))
    parts: list[Tensor] = []
    numbers = blocks.add_numbers_input(graph, table)
    if numbers is not None:
        x = blocks.smooth_clip(graph, numbers)
        parts.append(blocks.add_lines(graph, "tokens", x, (initializer, initializer), width))
    codes = blocks.add_codes_input(graph, table)
    if codes is not None:
        rows = blocks.offset_codes(graph, table, codes)
        parts.append(blocks.embed_codes(graph, "levels", table, rows, width, initializer))
    for number, encoding in enumerate(encoders.encode_columns(graph, table, params), 1):
        token = graph.layer("Dense", f"token_{number}", encoding, (width,), units=width)
        parts.append(graph.operation("ExpandDims", token, shape=(1, width), axis=1))
    return _add_prediction_token(graph, parts, width)


def _add_prediction_token(graph: Graph, parts: list[Tensor], width: int) -> Tensor:
    """Prepend the token for the prediction, which is initially the same for all rows."""
    count = 1 + sum(tokens.shape[0] for tokens in parts)
    zeros = graph.operation("Multiply", _first_token(graph, parts[0]), 0.0)
    initializer = uniform(1 / math.sqrt(width))
    weights = blocks.add_weights(graph, "gathering", zeros, (width,), initializer)
    token = graph.operation("Add", zeros, weights)
    first = graph.operation("ExpandDims", token, shape=(1, width), axis=1)
    tokens = [first, *parts]
    return graph.operation("Concatenate", tokens, shape=(count, width), dtype="float32", axis=1)


def _first_token(graph: Graph, tokens: Tensor) -> Tensor:
    return graph.operation("GetItem", tokens, [slice(None), 0], shape=tokens.shape[1:])


def _add_block(graph: Graph, number: int, x: Tensor, params: Params) -> Tensor:
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
    y = _add_gated_layer(graph, number, y)
    y = blocks.add_dropout(graph, f"dropout_{number}", y, float(params["dropout"]))
    y = graph.layer("Dense", f"narrow_{number}", y, x.shape, units=width)
    return graph.operation("Add", x, y)


def _add_gated_layer(graph: Graph, number: int, x: Tensor) -> Tensor:
    """Add a layer that is multiplied by another one with an activation."""
    count, width = x.shape
    units = math.ceil(HIDDEN_FACTOR * width)
    values = graph.layer("Dense", f"wider_{number}", x, (count, units), units=units)
    gate = graph.layer("Dense", f"gate_{number}", x, (count, units), units=units, activation="relu")
    return graph.operation("Multiply", values, gate)


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
