"""The template `resnet`: a residual dense network, as described by Gorishniy and others (2021)."""

from __future__ import annotations

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.layers import blocks, embeddings
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template

HIDDEN_FACTOR = 2
"""Units within a block, in multiples of its width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(RESNET.name)
    width = int(params["width"])
    x = _add_dense(graph, "first", embeddings.plain_columns(graph, table, params), width)
    for number in range(int(params["depth"])):
        x = graph.operation("Add", x, _add_block(graph, number, x, params))
    y = graph.layer("BatchNormalization", "last_normal", x, x.shape)
    y = graph.layer("Activation", "last_relu", y, y.shape, activation="relu")
    raw = _add_dense(graph, "out", y, head.units)
    return graph.to_json(blocks.add_prediction(graph, raw, head))


def _add_block(graph: Graph, number: int, x: Tensor, params: Params) -> Tensor:
    (width,) = x.shape
    y = graph.layer("BatchNormalization", f"normal_{number}", x, x.shape)
    y = _add_dense(graph, f"wider_{number}", y, HIDDEN_FACTOR * width)
    y = graph.layer("Activation", f"block_{number}_relu", y, y.shape, activation="relu")
    y = blocks.add_dropout(graph, f"dropout_{number}", y, float(params["dropout"]))
    y = _add_dense(graph, f"narrow_{number}", y, width)
    return blocks.add_dropout(graph, f"rest_{number}", y, float(params["residual_dropout"]))


def _add_dense(graph: Graph, name: str, x: Tensor, units: int) -> Tensor:
    return graph.layer("Dense", name, x, (units,), units=units)


RESNET = Template(
    name="resnet",
    meaning="Dense layers that add to what there is",
    fields=(
        Field("lr", "The learning rate", 0.001, Range(1e-4, 1e-2, "log"), limits=(1e-8, 100.0)),
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
            "The share of units left out in a block",
            0.25,
            Range(0.0, 0.5, "linear"),
            limits=(0.0, 0.95),
        ),
        Field(
            "width",
            "Units between blocks",
            128,
            Choices((128, 256, 512)),
            limits=(1, 65_536),
            whole=True,
        ),
        Field("depth", "Blocks", 2, Range(1, 4, "linear", whole=True), limits=(1, 16), whole=True),
        Field(
            "residual_dropout",
            "The share of what a block adds that is left out",
            0.1,
            Range(0.0, 0.5, "linear"),
            limits=(0.0, 0.95),
        ),
    ),
    architecture=_architecture,
    optimizer={"learning_rate": "lr", "weight_decay": "weight_decay"},
)
