"""The template `text`: a dense network over sums of words' vectors and other columns."""

from __future__ import annotations

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.common_fields import (
    LINK,
    apply_link,
    make_depth,
    make_dropout,
    make_learning_rate,
    make_weight_decay,
    make_width,
)
from cerebro_plpy.configs.templates.layers import blocks, embeddings, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import TEXT as KIND
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, NetworkTemplate, Params


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(TEXT.name)
    width = int(params["width"])
    dropout = float(params["dropout"])
    x = embeddings.plain_columns(graph, table, params)
    for number in range(int(params["depth"])):
        y = graph.dense(f"dense_{number}", x, width)
        y = graph.layer("Activation", f"activation_{number}", y, activation="relu")
        x = blocks.add_dropout(graph, f"dropout_{number}", y, dropout)
    raw = graph.dense("out", x, head.units)
    return graph.to_json(blocks.add_prediction(graph, raw, apply_link(head, params)))


TEXT = NetworkTemplate(
    name="text",
    meaning="Words as vectors, of whose sums a dense network learns, for tables with free text",
    kind=KIND,
    fields=(
        make_learning_rate(0.003, 5e-4, 0.02),
        *FIT_FIELDS,
        make_weight_decay(0.01, 1e-4, 0.3),
        make_dropout(0.5, 0.1, 0.7),
        make_width("Units of a hidden layer", (64, 128, 256), default=128),
        make_depth("Hidden layers", 1, 1, 3),
        Field(
            "word",
            "Numbers of a word",
            encoders.WORD_WIDTH,
            Choices((16, 32, 64)),
            limits=(1, 1024),
            is_whole=True,
        ),
        Field(
            "word_rate",
            "The learning rate of words, in lr",
            encoders.WORD_RATE,
            Range(2.0, 30.0, "log"),
            limits=(1e-3, 1e3),
        ),
        LINK,
    ),
    architecture=_architecture,
)
