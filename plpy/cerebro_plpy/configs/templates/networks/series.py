"""The template `series`: an encoder of series, and a dense layer over all columns."""

from __future__ import annotations

from cerebro_plpy.configs.search_space.distributions import Choices
from cerebro_plpy.configs.templates.common_fields import (
    make_depth,
    make_dropout,
    make_learning_rate,
    make_weight_decay,
    make_width,
)
from cerebro_plpy.configs.templates.layers import blocks, embeddings, sequences
from cerebro_plpy.configs.templates.layers.keras_graph import Graph
from cerebro_plpy.configs.templates.layers.model_io import SERIES as KIND
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, NetworkTemplate, Params

HIDDEN_UNITS = 2
"""Units of the hidden layer, in multiples of the width."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(SERIES.name)
    encoder_params = {f"series_{name}": params[name] for name in ("width", "depth", "dropout")}
    x = embeddings.plain_columns(graph, table, {**encoder_params, "block": params["block"]})
    units = HIDDEN_UNITS * int(params["width"])
    dropout = float(params["dropout"])
    return graph.to_json(blocks.add_hidden_prediction(graph, x, units, dropout, head))


SERIES = NetworkTemplate(
    name="series",
    meaning="Convolutions over series, or a recurrent layer, or attention, for tables with arrays "
    "that are series",
    kind=KIND,
    fields=(
        make_learning_rate(0.002, 3e-4, 0.01),
        *FIT_FIELDS,
        make_weight_decay(1e-3, 1e-5, 0.1),
        make_dropout(0.2, 0.0, 0.5),
        make_width("Channels of a block", (32, 64, 128), default=64, largest=4096),
        make_depth("Blocks", 3, 1, 4),
        Field(
            "block",
            "What reads a series",
            sequences.CONVOLUTION,
            Choices(sequences.BLOCKS),
            words=sequences.BLOCKS,
        ),
    ),
    architecture=_architecture,
    starts=({"block": sequences.RECURRENT, "depth": 1},),
)
