"""The template `text`: a dense network over sums of words' vectors and other columns."""

from __future__ import annotations

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.layers import blocks, embeddings, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import TEXT as KIND
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(TEXT.name)
    width = int(params["width"])
    dropout = float(params["dropout"])
    x = embeddings.plain_columns(graph, table, params)
    for number in range(int(params["depth"])):
        y = graph.layer("Dense", f"dense_{number}", x, (width,), units=width)
        y = graph.layer("Activation", f"activation_{number}", y, y.shape, activation="relu")
        x = blocks.add_dropout(graph, f"dropout_{number}", y, dropout)
    raw = graph.layer("Dense", "out", x, (head.units,), units=head.units)
    return graph.to_json(blocks.add_prediction(graph, raw, head))


TEXT = Template(
    name="text",
    meaning="Words as vectors, of whose sums a dense network learns, for tables with free text",
    kind=KIND,
    fields=(
        Field("lr", "The learning rate", 0.003, Range(5e-4, 0.02, "log"), limits=(1e-8, 100.0)),
        *FIT_FIELDS,
        Field(
            "weight_decay",
            "How fast weights shrink, times lr",
            0.01,
            Range(1e-4, 0.3, "log"),
            limits=(0.0, 10.0),
        ),
        Field(
            "dropout",
            "The share of units left out",
            0.5,
            Range(0.1, 0.7, "linear"),
            limits=(0.0, 0.95),
        ),
        Field(
            "width",
            "Units of a hidden layer",
            128,
            Choices((64, 128, 256)),
            limits=(1, 65_536),
            whole=True,
        ),
        Field(
            "depth",
            "Hidden layers",
            1,
            Range(1, 3, "linear", whole=True),
            limits=(1, 16),
            whole=True,
        ),
        Field(
            "word",
            "Numbers of a word",
            encoders.WORD_WIDTH,
            Choices((16, 32, 64)),
            limits=(1, 1024),
            whole=True,
        ),
        Field(
            "word_rate",
            "The learning rate of words, in lr",
            encoders.WORD_RATE,
            Range(2.0, 30.0, "log"),
            limits=(1e-3, 1e3),
        ),
    ),
    architecture=_architecture,
    optimizer={"learning_rate": "lr", "weight_decay": "weight_decay"},
)
