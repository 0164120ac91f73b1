"""The template `cnn`: convolutions over images, and a dense layer over all columns."""

from __future__ import annotations

from cerebro_plpy.configs.templates.common_fields import (
    make_depth,
    make_dropout,
    make_learning_rate,
    make_weight_decay,
    make_width,
)
from cerebro_plpy.configs.templates.layers import blocks, embeddings
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import IMAGE, Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, NetworkTemplate, Params

HIDDEN_UNITS = 4
"""Units of the hidden layer, in multiples of the width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(CNN.name)
    encoder_params = {f"image_{name}": params[name] for name in ("width", "depth")}
    x = embeddings.plain_columns(graph, table, encoder_params)
    units = HIDDEN_UNITS * int(params["width"])
    dropout = float(params["dropout"])
    return graph.to_json(blocks.add_hidden_prediction(graph, x, units, dropout, head))


CNN = NetworkTemplate(
    name="cnn",
    meaning="Convolutions over images, for tables with arrays that are images",
    kind=IMAGE,
    fields=(
        make_learning_rate(0.002, 3e-4, 0.01),
        *FIT_FIELDS,
        make_weight_decay(1e-3, 1e-5, 0.1),
        make_dropout(0.3, 0.0, 0.6),
        make_width("Channels of the first block", (16, 32, 64), default=32, largest=4096),
        make_depth("Blocks of two convolutions", 2, 1, 4, largest=8),
    ),
    architecture=_architecture,
)
