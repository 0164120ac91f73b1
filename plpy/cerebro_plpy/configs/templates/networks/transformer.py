"""The template `transformer`, an FT-Transformer: columns are tokens that attend to each other.

As described by Gorishniy and others, "Revisiting Deep Learning Models for Tabular Data" (2021). Its
default width is a third of theirs, because the time of a step is proportional to the columns.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.templates.common_fields import (
    LINK,
    apply_link,
    make_depth,
    make_dropout,
    make_learning_rate,
    make_weight_decay,
    make_width,
)
from cerebro_plpy.configs.templates.layers import blocks, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, uniform
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, NetworkTemplate, Params

HEADS = 8
HIDDEN_FACTOR = 4 / 3
"""Units of the hidden layer after attention, in multiples of the width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(TRANSFORMER.name)
    tokens = _make_tokens(graph, table, params)
    for number in range(int(params["depth"])):
        tokens = _add_block(graph, number, tokens, params)
    first = _first_token(graph, tokens)
    y = graph.layer("LayerNormalization", "last_normal", first)
    y = graph.layer("Activation", "last_relu", y, activation="relu")
    raw = graph.dense("out", y, head.units)
    return graph.to_json(blocks.add_prediction(graph, raw, apply_link(head, params)))


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
        token = graph.dense(f"token_{number}", encoding, width)
        parts.append(graph.operation("ExpandDims", token, shape=(1, width), axis=1))
    return _add_prediction_token(graph, parts, width)


def _add_prediction_token(graph: Graph, parts: list[Tensor], width: int) -> Tensor:
    """Prepend the token for the prediction, which is initially the same for all rows."""
    count = 1 + sum(tokens.shape[0] for tokens in parts)
    zeros = graph.multiply(_first_token(graph, parts[0]), 0.0)
    initializer = uniform(1 / math.sqrt(width))
    weights = blocks.add_weights(graph, "gathering", zeros, (width,), initializer)
    token = graph.add(zeros, weights)
    first = graph.operation("ExpandDims", token, shape=(1, width), axis=1)
    tokens = [first, *parts]
    return graph.operation("Concatenate", tokens, shape=(count, width), dtype="float32", axis=1)


def _first_token(graph: Graph, tokens: Tensor) -> Tensor:
    return graph.operation("GetItem", tokens, [slice(None), 0], shape=tokens.shape[1:])


def _add_block(graph: Graph, number: int, x: Tensor, params: Params) -> Tensor:
    width = x.shape[-1]
    dropout = float(params["attention_dropout"])
    y = graph.layer("LayerNormalization", f"before_{number}", x)
    x = graph.add(x, blocks.add_self_attention(graph, f"attention_{number}", y, HEADS, dropout))
    y = graph.layer("LayerNormalization", f"between_{number}", x)
    units = math.ceil(HIDDEN_FACTOR * width)
    values = graph.dense(f"wider_{number}", y, units)
    gate = graph.dense(f"gate_{number}", y, units, activation="relu")
    y = graph.multiply(values, gate)
    y = blocks.add_dropout(graph, f"dropout_{number}", y, float(params["dropout"]))
    return graph.add(x, graph.dense(f"narrow_{number}", y, width))


TRANSFORMER = NetworkTemplate(
    name="transformer",
    meaning="Columns that attend to each other",
    fields=(
        make_learning_rate(3e-4, 1e-5, 3e-3),
        *FIT_FIELDS,
        make_weight_decay(1e-5, 1e-6, 0.1),
        make_dropout(0.1, 0.0, 0.5),
        make_width("Numbers of a token", (64, 96, 128, 192), default=64),
        make_depth("Layers that attend", 3, 1, 4),
        make_dropout(0.2, 0.0, 0.5, "attention_dropout", "The share of attention left out"),
        LINK,
    ),
    architecture=_architecture,
)
