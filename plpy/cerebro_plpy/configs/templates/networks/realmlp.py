"""The templates `realmlp` and `realmlp_simple`: a dense network for tables, with defaults tuned
over many of them.

As described by Holzmüller, Grinsztajn and Steinwart, "Better by Default" (2024), as RealMLP-TD and
RealMLP-TD-S. What that paper draws from data, the scale of the first pre-activations and the
biases, begins as in its simple form. Its rate for float targets is 0.2, which rises and falls four
times in 256 epochs. With one that falls once, over fewer epochs, 0.04 was better on two of three
tables, those of some thousand rows; there pieces, and faster waves than its usual ones, were better
too, by far, so a search over many rows begins with them.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.search_space.distributions import Choices, Range
from cerebro_plpy.configs.templates.layers import blocks, embeddings, encoders
from cerebro_plpy.configs.templates.layers.embeddings import FREQUENCY, NUMBERS, PIECEWISE, Waves
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, constant, normal
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template

ACTIVATION_RATE = 0.1
SIMPLE_SCALE_RATE = 6.0
ONE = 2 / math.sqrt(1 + (2 / 3) ** 2)
"""A 1 among zeros, once it is scaled and clipped as numbers are: divided by half its range."""


HIDDEN = blocks.Beginning(kernel=1.0, bias=1.0)


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(REALMLP.name)
    waves = Waves(float(params["frequency"]), float(params["embedding_rate"]))
    x = embeddings.columns(graph, table, waves, params)
    x = blocks.scaled(graph, "scale", x, float(params["scale_rate"]))
    for number in range(int(params["depth"])):
        rate = float(params["first_rate"]) if number == 0 else 1.0
        y = blocks.dense(graph, f"dense_{number}", x, int(params["width"]), HIDDEN, rate)
        x = _dropped(graph, number, _parametric(graph, number, y, params), params)
    return graph.text(_prediction(graph, x, head, params, begin=1.0))


def _prediction(graph: Graph, x: Tensor, head: Head, params: Params, begin: float) -> Tensor:
    raw = blocks.dense(graph, "out", x, head.units, blocks.Beginning(kernel=begin, bias=0.0))
    if isinstance(head, Classes):
        raw = blocks.smoothed(graph, raw, float(params.get("label_smoothing", 0.0)))
    return blocks.prediction(graph, raw, head)


def _parametric(graph: Graph, number: int, y: Tensor, params: Params) -> Tensor:
    """y + a·(f(y) - y), where a begins at 1, for each unit."""
    bent = _activated(graph, number, y, params)
    change = graph.operation("Subtract", bent, y)
    return graph.operation(
        "Add", y, blocks.scaled(graph, f"bend_{number}", change, ACTIVATION_RATE)
    )


def _activated(graph: Graph, number: int, y: Tensor, params: Params) -> Tensor:
    return graph.layer(
        "Activation", f"activation_{number}", y, y.shape, activation=params["activation"]
    )


def _dropped(graph: Graph, number: int, x: Tensor, params: Params) -> Tensor:
    return blocks.dropped(graph, f"dropout_{number}", x, float(params["dropout"]))


def _simple_architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(SIMPLE.name)
    x = _dropped(graph, 0, _activated(graph, 0, _first(graph, table, params), params), params)
    for number in range(1, int(params["depth"])):
        y = blocks.dense(graph, f"dense_{number}", x, int(params["width"]), HIDDEN)
        x = _dropped(graph, number, _activated(graph, number, y, params), params)
    return graph.text(_prediction(graph, x, head, params, begin=0.0))


def _first(graph: Graph, table: Table, params: Params) -> Tensor:
    """A dense layer over numbers, indicators, and each level of each category as a column of zeros
    and ones.

    These columns are never made: their weights are looked up. A level 0 is zeros.
    """
    width, columns = int(params["width"]), table.columns + table.levels - len(table.cardinalities)
    found = [*_simple_numbers(graph, table, width), *_simple_levels(graph, table, width)]
    for place, wide in enumerate(encoders.encoded(graph, table, params), 1):
        found.append(_first_dense(graph, f"dense_wide_{place}", wide, width))
        columns += wide.shape[0]
    mean = graph.operation("Multiply", blocks.added(graph, found), 1 / math.sqrt(columns))
    return blocks.with_bias(graph, "bias_0", mean, normal(1.0 / blocks.BIAS_RATE), blocks.BIAS_RATE)


def _simple_numbers(graph: Graph, table: Table, width: int) -> list[Tensor]:
    given = blocks.numbers_input(graph, table)
    if given is None:
        return []
    x = blocks.scaled(graph, "scale", blocks.smooth_clip(graph, given), SIMPLE_SCALE_RATE)
    return [_first_dense(graph, "dense_0", x, width)]


def _first_dense(graph: Graph, name: str, x: Tensor, width: int) -> Tensor:
    config = {"units": width, "use_bias": False, "kernel_initializer": normal(1.0)}
    return graph.layer("Dense", name, x, (width,), **config)


def _simple_levels(graph: Graph, table: Table, width: int) -> list[Tensor]:
    codes = blocks.codes_input(graph, table)
    if codes is None:
        return []
    places, count = blocks.places(graph, table, codes), len(table.cardinalities)
    weights = blocks.looked_up(graph, "levels", table, places, width, normal(1.0))
    scales = blocks.looked_up(
        graph, "level_scales", table, places, 1, constant(1 / SIMPLE_SCALE_RATE)
    )
    given = graph.operation("ExpandDims", graph.operation("Sign", codes), shape=(count, 1), axis=-1)
    ones = graph.operation(
        "Multiply", graph.operation("Multiply", scales, SIMPLE_SCALE_RATE * ONE), given
    )
    return [
        graph.operation(
            "Sum",
            graph.operation("Multiply", weights, ones),
            shape=(width,),
            axis=1,
            keepdims=False,
        )
    ]


_SHRINKING = "How fast weights shrink, times lr"
_DEPTH = Field(
    "depth", "Hidden layers", 3, Range(2, 4, "linear", whole=True), limits=(1, 16), whole=True
)
_WIDTH = Field(
    "width",
    "Units of a hidden layer",
    256,
    Choices((256, 384, 512)),
    limits=(1, 65_536),
    whole=True,
)
_ACTIVATION = Field(
    "activation",
    "What bends a layer",
    "selu",
    Choices(("mish",)),
    words=("selu", "mish"),
    floats="mish",
)
_SMOOTHING = Field(
    "label_smoothing",
    "The share of a class that is spread over all",
    0.1,
    Choices((0.0, 0.1)),
    limits=(0.0, 0.9),
    floats=0.0,
    calibrated=0.0,
    settled=True,
)
_RATE_LIMITS = 1e-3, 1e3


def _rate(floats: float | None = None) -> Field:
    return Field(
        "lr",
        "The learning rate",
        0.04,
        Range(0.02, 0.3, "log"),
        limits=(1e-8, 100.0),
        floats=floats,
    )


def _factor(name: str, what: str, default: float, low: float, high: float) -> Field:
    return Field(
        name,
        f"The learning rate of {what}, in lr",
        default,
        Range(low, high, "log"),
        limits=_RATE_LIMITS,
    )


REALMLP = Template(
    name="realmlp",
    meaning="A dense network with embeddings of numbers, for tables of any kind",
    fields=(
        _rate(),
        *FIT_FIELDS,
        Field("weight_decay", _SHRINKING, 0.02, Range(0.001, 0.05, "log"), limits=(0.0, 10.0)),
        Field(
            "dropout",
            "The share of units left out",
            0.15,
            Range(0.0, 0.5, "linear"),
            limits=(0.0, 0.95),
        ),
        _WIDTH,
        _DEPTH,
        _ACTIVATION,
        _SMOOTHING,
        NUMBERS,
        FREQUENCY,
        _factor("embedding_rate", "embeddings of numbers", 0.1, 0.05, 0.3),
        _factor("scale_rate", "the weights of columns", 6.0, 2.0, 10.0),
        _factor("first_rate", "the first hidden layer", 1.0, 0.3, 1.5),
        Field(
            "beta_2",
            "How long squares of gradients count",
            0.95,
            Range(0.95, 0.995, "log_near_one"),
            limits=(0.5, 0.9999),
        ),
    ),
    architecture=_architecture,
    optimizer={
        "learning_rate": "lr",
        "beta_1": 0.9,
        "beta_2": "beta_2",
        "weight_decay": "weight_decay",
    },
    starts=(
        {"numbers": PIECEWISE, "width": 128},
        {"frequency": 5.0, "embedding_rate": 1.0, "width": 128},
        {"frequency": 1.0, "embedding_rate": 0.3, "width": 128},
    ),
)
SIMPLE = Template(
    name="realmlp_simple",
    meaning="A dense network without embeddings or dropout, faster than realmlp",
    fields=(
        _rate(floats=0.07),
        *FIT_FIELDS,
        Field("weight_decay", _SHRINKING, 0.0, Choices((0.0,)), limits=(0.0, 10.0)),
        Field("dropout", "The share of units left out", 0.0, Choices((0.0,)), limits=(0.0, 0.95)),
        _WIDTH,
        _DEPTH,
        _ACTIVATION,
    ),
    architecture=_simple_architecture,
    optimizer={
        "learning_rate": "lr",
        "beta_1": 0.9,
        "beta_2": 0.95,
        "weight_decay": "weight_decay",
    },
)
