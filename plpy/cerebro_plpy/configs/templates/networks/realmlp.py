"""The templates `realmlp` and `realmlp_simple`: dense networks for tables with tuned defaults.

They are RealMLP-TD and RealMLP-TD-S of Holzmüller, Grinsztajn and Steinwart, "Better by Default"
(2024). That paper computes the scale of the first pre-activations and the biases from data; here
they are initialized as in its simple form. Its rate for float targets is 0.2, which rises and falls
four times in 256 epochs. With a rate that falls once, over fewer epochs, 0.04 was better on two of
three tables, those of some thousand rows. On these tables, piecewise embeddings and faster waves
than the paper's were far better, too, so a search over many rows starts with them.
"""

from __future__ import annotations

import math

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
from cerebro_plpy.configs.templates.layers.embeddings import FREQUENCY, NUMBERS, PIECEWISE, Waves
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, constant, normal
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, NetworkTemplate, Params

ACTIVATION_RATE = 0.1
SIMPLE_SCALE_RATE = 6.0
ONE = 2 / math.sqrt(1 + (2 / 3) ** 2)
"""A one in a one-hot column, divided by half its range and clipped like numbers."""
HIDDEN = blocks.Initialization(kernel=1.0, bias=1.0)


def _architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(REALMLP.name)
    width = int(params["width"])
    waves = Waves(float(params["frequency"]), float(params["embedding_rate"]))
    x = embeddings.embed_columns(graph, table, waves, params)
    x = blocks.scale_columns(graph, "scale", x, float(params["scale_rate"]))
    for number in range(int(params["depth"])):
        rate = float(params["first_rate"]) if number == 0 else 1.0
        y = blocks.add_dense(graph, f"dense_{number}", x, width, HIDDEN, rate)
        y = _add_parametric_activation(graph, number, y, params)
        x = _add_dropout(graph, number, y, params)
    return graph.to_json(_add_prediction(graph, x, head, params, deviation=1.0))


def _simple_architecture(table: Table, head: Head, params: Params) -> str:
    graph = Graph(SIMPLE.name)
    y = _add_activation(graph, 0, _add_first_layer(graph, table, params), params)
    x = _add_dropout(graph, 0, y, params)
    for number in range(1, int(params["depth"])):
        y = blocks.add_dense(graph, f"dense_{number}", x, int(params["width"]), HIDDEN)
        y = _add_activation(graph, number, y, params)
        x = _add_dropout(graph, number, y, params)
    return graph.to_json(_add_prediction(graph, x, head, params, deviation=0.0))


def _add_prediction(
    graph: Graph, x: Tensor, head: Head, params: Params, deviation: float
) -> Tensor:
    initialization = blocks.Initialization(kernel=deviation, bias=0.0)
    raw = blocks.add_dense(graph, "out", x, head.units, initialization)
    if isinstance(head, Classes):
        raw = blocks.smooth_labels(graph, raw, float(params.get("label_smoothing", 0.0)))
    return blocks.add_prediction(graph, raw, apply_link(head, params))


def _add_parametric_activation(graph: Graph, number: int, y: Tensor, params: Params) -> Tensor:
    """Return y + a·(f(y) - y), with a weight a of each unit, initially 1."""
    activated = _add_activation(graph, number, y, params)
    change = graph.subtract(activated, y)
    scaled = blocks.scale_columns(graph, f"bend_{number}", change, ACTIVATION_RATE)
    return graph.add(y, scaled)


def _add_activation(graph: Graph, number: int, y: Tensor, params: Params) -> Tensor:
    activation = params["activation"]
    return graph.layer("Activation", f"activation_{number}", y, activation=activation)


def _add_dropout(graph: Graph, number: int, x: Tensor, params: Params) -> Tensor:
    return blocks.add_dropout(graph, f"dropout_{number}", x, float(params["dropout"]))


def _add_first_layer(graph: Graph, table: Table, params: Params) -> Tensor:
    """Add a dense layer over numbers, indicators, one-hot levels of categories, and wide columns.

    The one-hot columns, in which level 0 is all zeros, are not computed: their weights are looked
    up.
    """
    width = int(params["width"])
    columns = table.columns + table.levels - len(table.cardinalities)
    terms = [
        *_weigh_numbers(graph, table, width),
        *_weigh_levels(graph, table, width),
    ]
    for number, encoding in enumerate(encoders.encode_columns(graph, table, params), 1):
        name = f"dense_wide_{number}"
        terms.append(blocks.multiply_by_weights(graph, name, encoding, width, normal(1.0)))
        columns += encoding.shape[0]
    mean = graph.multiply(blocks.add_up(graph, terms), 1 / math.sqrt(columns))
    initializer = normal(1.0 / blocks.BIAS_RATE)
    return blocks.add_bias(graph, "bias_0", mean, initializer, blocks.BIAS_RATE)


def _weigh_numbers(graph: Graph, table: Table, width: int) -> list[Tensor]:
    numbers = blocks.add_numbers_input(graph, table)
    if numbers is None:
        return []
    clipped = blocks.smooth_clip(graph, numbers)
    x = blocks.scale_columns(graph, "scale", clipped, SIMPLE_SCALE_RATE)
    return [blocks.multiply_by_weights(graph, "dense_0", x, width, normal(1.0))]


def _weigh_levels(graph: Graph, table: Table, width: int) -> list[Tensor]:
    codes = blocks.add_codes_input(graph, table)
    if codes is None:
        return []
    count = len(table.cardinalities)
    rows = blocks.offset_codes(graph, table, codes)
    weights = blocks.embed_codes(graph, "levels", table, rows, width, normal(1.0))
    initializer = constant(1 / SIMPLE_SCALE_RATE)
    scales = blocks.embed_codes(graph, "level_scales", table, rows, 1, initializer)
    signs = graph.operation("Sign", codes)
    is_known = graph.operation("ExpandDims", signs, shape=(count, 1), axis=-1)
    scaled_ones = graph.multiply(scales, SIMPLE_SCALE_RATE * ONE)
    ones = graph.multiply(scaled_ones, is_known)
    products = graph.multiply(weights, ones)
    return [graph.reduce("Sum", products)]


_DEPTH = make_depth("Hidden layers", 3, 2, 4)
_WIDTH = make_width("Units of a hidden layer", (256, 384, 512), default=256)
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


def _rate_factor(name: str, parameters: str, default: float, low: float, high: float) -> Field:
    return Field(
        name,
        f"The learning rate of {parameters}, in lr",
        default,
        Range(low, high, "log"),
        limits=_RATE_LIMITS,
    )


REALMLP = NetworkTemplate(
    name="realmlp",
    meaning="A dense network with embeddings of numbers, for tables of any kind",
    fields=(
        make_learning_rate(0.04, 0.02, 0.3),
        *FIT_FIELDS,
        make_weight_decay(0.02, 0.001, 0.05),
        make_dropout(0.15, 0.0, 0.5),
        _WIDTH,
        _DEPTH,
        _ACTIVATION,
        _SMOOTHING,
        NUMBERS,
        FREQUENCY,
        _rate_factor("embedding_rate", "embeddings of numbers", 0.1, 0.05, 0.3),
        _rate_factor("scale_rate", "the weights of columns", 6.0, 2.0, 10.0),
        _rate_factor("first_rate", "the first hidden layer", 1.0, 0.3, 1.5),
        Field(
            "beta_2",
            "How long squares of gradients count",
            0.95,
            Range(0.95, 0.995, "log_near_one"),
            limits=(0.5, 0.9999),
        ),
        LINK,
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
SIMPLE = NetworkTemplate(
    name="realmlp_simple",
    meaning="A dense network without embeddings or dropout, faster than realmlp",
    fields=(
        make_learning_rate(0.04, 0.02, 0.3, floats=0.07),
        *FIT_FIELDS,
        make_weight_decay(0.0),
        make_dropout(0.0),
        _WIDTH,
        _DEPTH,
        _ACTIVATION,
        LINK,
    ),
    architecture=_simple_architecture,
    optimizer={
        "learning_rate": "lr",
        "beta_1": 0.9,
        "beta_2": 0.95,
        "weight_decay": "weight_decay",
    },
)
