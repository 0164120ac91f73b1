"""The template `tabm`: many dense networks in one, which share all weights but a few, and predict
by their mean.

As described by Gorishniy, Kotelnikov and Babenko, "TabM" (2024): before and after each layer, which
all members share, every member multiplies by weights of its own. Members and widths are fewer than
there, since a step takes as many times as long as that of one network; numbers have waves beside
them, of the embeddings that `realmlp` has.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.search_space.distributions import Choices, Range
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
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template

CLIPNORM = 1.0


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(TABM.name)
    columns = embeddings.columns(graph, table, Waves(float(params["frequency"])), params)
    x = _apart(graph, columns, int(params["members"]))
    for number in range(int(params["depth"])):
        x = _layer(graph, number, x, columns, params)
    return graph.text(
        blocks.prediction(graph, batch_ensemble.averaged(graph, _heads(graph, x, head), head), head)
    )


def _apart(graph: Graph, columns: Tensor, count: int) -> Tensor:
    """What each member makes of the columns: weights of its own times each."""
    (width,) = columns.shape
    own = blocks.weights(graph, "before_0", columns, (count, width), normal(1.0))
    same = graph.operation("ExpandDims", columns, shape=(1, width), axis=1)
    return graph.operation("Multiply", same, own, shape=(count, width))


def _layer(graph: Graph, number: int, x: Tensor, columns: Tensor, params: Params) -> Tensor:
    (count, before), width = x.shape, int(params["width"])
    if number:
        own = blocks.weights(graph, f"before_{number}", columns, (count, before), constant(1.0))
        x = graph.operation("Multiply", x, own)
    limit = uniform(1 / math.sqrt(before))
    config = {"units": width, "use_bias": False, "kernel_initializer": limit}
    y = graph.layer("Dense", f"dense_{number}", x, (count, width), **config)
    scale = blocks.weights(graph, f"after_{number}", columns, (count, width), constant(1.0))
    bias = blocks.weights(graph, f"bias_{number}", columns, (count, width), limit)
    y = graph.operation("Add", graph.operation("Multiply", y, scale), bias)
    y = graph.layer("Activation", f"activation_{number}", y, y.shape, activation="relu")
    return blocks.dropped(graph, f"dropout_{number}", y, float(params["dropout"]))


def _heads(graph: Graph, x: Tensor, head: Head) -> Tensor:
    """A linear layer for each member."""
    count, width = x.shape
    limit = uniform(1 / math.sqrt(width))
    config = {"equation": "bkd,kdo->bko", "output_shape": [count, head.units], "bias_axes": "ko"}
    shape = (count, head.units)
    return graph.layer(
        "EinsumDense", "heads", x, shape, **config, kernel_initializer=limit, bias_initializer=limit
    )


TABM = Template(
    name="tabm",
    meaning="Many dense networks that share their weights, and predict by their mean",
    fields=(
        Field("lr", "The learning rate", 0.002, Range(1e-4, 5e-3, "log"), limits=(1e-8, 100.0)),
        *FIT_FIELDS,
        Field(
            "weight_decay",
            "How fast weights shrink, times lr",
            3e-4,
            Range(1e-4, 0.1, "log"),
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
            "Units of a hidden layer",
            256,
            Choices((128, 256, 384)),
            limits=(1, 65_536),
            whole=True,
        ),
        Field(
            "depth",
            "Hidden layers",
            2,
            Range(1, 4, "linear", whole=True),
            limits=(1, 16),
            whole=True,
        ),
        Field("members", "Networks in one", 16, Choices((16,)), limits=(1, 256), whole=True),
        NUMBERS,
        FREQUENCY,
    ),
    architecture=_architecture,
    optimizer={"learning_rate": "lr", "weight_decay": "weight_decay", "global_clipnorm": CLIPNORM},
)
