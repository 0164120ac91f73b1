"""The template `cnn`: convolutions over images, and a dense layer over all columns."""

from __future__ import annotations

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.layers import blocks, embeddings
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import IMAGE, Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template

HIDDEN_UNITS = 4
"""Units of the hidden layer, in multiples of the width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(CNN.name)
    encoder_params = {f"image_{name}": params[name] for name in ("width", "depth")}
    x = embeddings.plain_columns(graph, table, encoder_params)
    units = HIDDEN_UNITS * int(params["width"])
    dropout = float(params["dropout"])
    return graph.to_json(blocks.add_hidden_prediction(graph, x, units, dropout, head))


CNN = Template(
    name="cnn",
    meaning="Convolutions over images, for tables with arrays that are images",
    kind=IMAGE,
    fields=(
        Field("lr", "The learning rate", 0.002, Range(3e-4, 0.01, "log"), limits=(1e-8, 100.0)),
        *FIT_FIELDS,
        Field(
            "weight_decay",
            "How fast weights shrink, times lr",
            1e-3,
            Range(1e-5, 0.1, "log"),
            limits=(0.0, 10.0),
        ),
        Field(
            "dropout",
            "The share of units left out",
            0.3,
            Range(0.0, 0.6, "linear"),
            limits=(0.0, 0.95),
        ),
        Field(
            "width",
            "Channels of the first block",
            32,
            Choices((16, 32, 64)),
            limits=(1, 4096),
            whole=True,
        ),
        Field(
            "depth",
            "Blocks of two convolutions",
            2,
            Range(1, 4, "linear", whole=True),
            limits=(1, 8),
            whole=True,
        ),
    ),
    architecture=_architecture,
    optimizer={"learning_rate": "lr", "weight_decay": "weight_decay"},
)
