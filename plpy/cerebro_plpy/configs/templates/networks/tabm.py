"""The template `tabm`: the mean of many dense networks that share all but a few weights.

As described by Gorishniy, Kotelnikov and Babenko, "TabM" (2024): before and after each layer, which
all members share, every member multiplies by weights of its own. There are fewer members of smaller
width, because the time of a step is proportional to their number. Numbers have the embeddings of
`realmlp`.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.search_space.distributions import Choices
from cerebro_plpy.configs.templates.common_fields import (
    make_depth,
    make_dropout,
    make_learning_rate,
    make_weight_decay,
    make_width,
)
from cerebro_plpy.configs.templates.layers import batch_ensemble, blocks, embeddings
from cerebro_plpy.configs.templates.layers.embeddings import FREQUENCY, NUMBERS, Waves
from cerebro_plpy.configs.templates.layers.keras_graph import (
    Graph,
    Tensor,
    constant,
    normal,
    uniform,
)
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, NetworkTemplate, Params

CLIPNORM = 1.0


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(TABM.name)
    columns = embeddings.embed_columns(graph, table, Waves(float(params["frequency"])), params)
    x = _scale_inputs(graph, columns, int(params["members"]))
    for number in range(int(params["depth"])):
        x = _add_layer(graph, number, x, columns, params)
    raw = batch_ensemble.average_members(graph, _add_heads(graph, x, head), head)
    return graph.to_json(blocks.add_prediction(graph, raw, head))


def _scale_inputs(graph: Graph, columns: Tensor, members: int) -> Tensor:
    """Multiply the columns by weights of each member, shape (members, width)."""
    (width,) = columns.shape
    weights = blocks.add_weights(graph, "before_0", columns, (members, width), normal(1.0))
    shared = graph.operation("ExpandDims", columns, shape=(1, width), axis=1)
    return graph.multiply(shared, weights, shape=(members, width))


def _add_layer(graph: Graph, number: int, x: Tensor, columns: Tensor, params: Params) -> Tensor:
    members, input_width = x.shape
    width = int(params["width"])
    shape = (members, width)
    ones = constant(1.0)
    if number:
        input_weights = blocks.add_weights(graph, f"before_{number}", columns, x.shape, ones)
        x = graph.multiply(x, input_weights)
    initializer = uniform(1 / math.sqrt(input_width))
    y = blocks.multiply_by_weights(graph, f"dense_{number}", x, width, initializer)
    output_weights = blocks.add_weights(graph, f"after_{number}", columns, shape, ones)
    bias = blocks.add_weights(graph, f"bias_{number}", columns, shape, initializer)
    y = graph.add(graph.multiply(y, output_weights), bias)
    y = graph.layer("Activation", f"activation_{number}", y, activation="relu")
    return blocks.add_dropout(graph, f"dropout_{number}", y, float(params["dropout"]))


def _add_heads(graph: Graph, x: Tensor, head: Head) -> Tensor:
    """Add a linear layer for each member."""
    members, width = x.shape
    initializer = uniform(1 / math.sqrt(width))
    return graph.layer(
        "EinsumDense",
        "heads",
        x,
        (members, head.units),
        equation="bkd,kdo->bko",
        output_shape=[members, head.units],
        bias_axes="ko",
        kernel_initializer=initializer,
        bias_initializer=initializer,
    )


TABM = NetworkTemplate(
    name="tabm",
    meaning="Many dense networks that share their weights, and predict by their mean",
    fields=(
        make_learning_rate(0.002, 1e-4, 5e-3),
        *FIT_FIELDS,
        make_weight_decay(3e-4, 1e-4, 0.1),
        make_dropout(0.1, 0.0, 0.5),
        make_width("Units of a hidden layer", (128, 256, 384), default=256),
        make_depth("Hidden layers", 2, 1, 4),
        Field("members", "Networks in one", 16, Choices((16,)), limits=(1, 256), is_whole=True),
        NUMBERS,
        FREQUENCY,
    ),
    architecture=_architecture,
    optimizer={"learning_rate": "lr", "weight_decay": "weight_decay", "global_clipnorm": CLIPNORM},
)
