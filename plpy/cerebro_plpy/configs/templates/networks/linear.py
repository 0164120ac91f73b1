"""The template `linear`, a baseline: softmax regression for classes, linear one for floats.

All weights are initially 0, so a level of a category that was never seen has no influence.
"""

from __future__ import annotations

from cerebro_plpy.configs.templates.common_fields import (
    LINK,
    apply_link,
    make_learning_rate,
    make_weight_decay,
)
from cerebro_plpy.configs.templates.layers import blocks, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, normal
from cerebro_plpy.configs.templates.layers.model_io import LOG, Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, NetworkTemplate, Params

FARTHEST = 16.0
"""Bound to which standardized numbers are clipped, so that a single row has little influence."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(LINEAR.name)
    numbers = blocks.add_numbers_input(graph, table)
    codes = blocks.add_codes_input(graph, table)
    terms = []
    if numbers is not None:
        terms.append(_weigh_numbers(graph, numbers, head.units))
    if codes is not None:
        terms.append(_weigh_levels(graph, table, codes, head.units))
    terms += encoders.encode_linear(graph, table, head.units)
    raw = blocks.add_bias(graph, "bias", blocks.add_up(graph, terms), normal(0.0))
    return graph.to_json(blocks.add_prediction(graph, raw, apply_link(head, params)))


def _weigh_numbers(graph: Graph, numbers: Tensor, units: int) -> Tensor:
    bounded = graph.operation("Clip", numbers, x_min=-FARTHEST, x_max=FARTHEST)
    return blocks.multiply_by_weights(graph, "weights", bounded, units, normal(0.0))


def _weigh_levels(graph: Graph, table: Table, codes: Tensor, units: int) -> Tensor:
    rows = blocks.offset_codes(graph, table, codes)
    weights = blocks.embed_codes(graph, "levels", table, rows, units, normal(0.0))
    return graph.reduce("Sum", weights)


LINEAR = NetworkTemplate(
    name="linear",
    meaning="Softmax regression for classes, linear regression for floats",
    fields=(
        make_learning_rate(0.01, 1e-3, 0.1),
        *FIT_FIELDS,
        make_weight_decay(0.0, 1e-5, 0.1),
        LINK,
    ),
    architecture=_architecture,
    skewed_starts=({LINK.name: LOG},),
)
