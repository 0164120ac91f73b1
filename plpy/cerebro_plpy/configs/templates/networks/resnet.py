"""The template `resnet`: a residual dense network, as described by Gorishniy and others (2021)."""

from __future__ import annotations

from cerebro_plpy.configs.templates.common_fields import (
    LINK,
    apply_link,
    make_depth,
    make_dropout,
    make_learning_rate,
    make_weight_decay,
    make_width,
)
from cerebro_plpy.configs.templates.layers import blocks, embeddings
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, NetworkTemplate, Params

HIDDEN_FACTOR = 2
"""Units within a block, in multiples of its width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(RESNET.name)
    width = int(params["width"])
    x = graph.dense("first", embeddings.plain_columns(graph, table, params), width)
    for number in range(int(params["depth"])):
        x = graph.add(x, _add_block(graph, number, x, params))
    y = graph.layer("BatchNormalization", "last_normal", x)
    y = graph.layer("Activation", "last_relu", y, activation="relu")
    raw = graph.dense("out", y, head.units)
    return graph.to_json(blocks.add_prediction(graph, raw, apply_link(head, params)))


def _add_block(graph: Graph, number: int, x: Tensor, params: Params) -> Tensor:
    (width,) = x.shape
    y = graph.layer("BatchNormalization", f"normal_{number}", x)
    y = graph.dense(f"wider_{number}", y, HIDDEN_FACTOR * width)
    y = graph.layer("Activation", f"block_{number}_relu", y, activation="relu")
    y = blocks.add_dropout(graph, f"dropout_{number}", y, float(params["dropout"]))
    y = graph.dense(f"narrow_{number}", y, width)
    return blocks.add_dropout(graph, f"rest_{number}", y, float(params["residual_dropout"]))


RESNET = NetworkTemplate(
    name="resnet",
    meaning="Dense layers that add to what there is",
    fields=(
        make_learning_rate(0.001, 1e-4, 1e-2),
        *FIT_FIELDS,
        make_weight_decay(1e-5, 1e-6, 0.1),
        make_dropout(0.25, 0.0, 0.5, meaning="The share of units left out in a block"),
        make_width("Units between blocks", (128, 256, 512), default=128),
        make_depth("Blocks", 2, 1, 4),
        make_dropout(
            0.1, 0.0, 0.5, "residual_dropout", "The share of what a block adds that is left out"
        ),
        LINK,
    ),
    architecture=_architecture,
)
