"""The template `linear`: softmax regression for classes, linear regression for floats; what a model
must beat.

All weights begin at 0, so a level of a category that was never seen has no say.
"""

from __future__ import annotations

from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.configs.templates.layers import blocks, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, normal
from cerebro_plpy.configs.templates.layers.model_io import Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template

REACH = 16.0
"""Centred and scaled numbers beyond it count as this: one row must not decide a line."""


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(LINEAR.name)
    numbers = blocks.numbers_input(graph, table)
    codes = blocks.codes_input(graph, table)
    sums = [] if numbers is None else [_weighted(graph, numbers, head.units)]
    sums += [] if codes is None else [_levels(graph, table, codes, head.units)]
    sums += encoders.weighed(graph, table, head.units)
    raw = blocks.with_bias(graph, "bias", blocks.added(graph, sums), normal(0.0))
    return graph.text(blocks.prediction(graph, raw, head))


def _levels(graph: Graph, table: Table, codes: Tensor, units: int) -> Tensor:
    found = blocks.looked_up(
        graph, "levels", table, blocks.places(graph, table, codes), units, normal(0.0)
    )
    return graph.operation("Sum", found, shape=(units,), axis=1, keepdims=False)


def _weighted(graph: Graph, numbers: Tensor, units: int) -> Tensor:
    near = graph.operation("Clip", numbers, x_min=-REACH, x_max=REACH)
    return graph.layer(
        "Dense",
        "weights",
        near,
        (units,),
        units=units,
        use_bias=False,
        kernel_initializer=normal(0.0),
    )


LINEAR = Template(
    name="linear",
    meaning="Softmax regression for classes, linear regression for floats",
    fields=(
        Field("lr", "The learning rate", 0.01, Range(1e-3, 0.1, "log"), limits=(1e-8, 100.0)),
        *FIT_FIELDS,
        Field(
            "weight_decay",
            "How fast weights shrink, times lr",
            0.0,
            Range(1e-5, 0.1, "log"),
            limits=(0.0, 10.0),
        ),
    ),
    architecture=_architecture,
    optimizer={"learning_rate": "lr", "weight_decay": "weight_decay"},
)
