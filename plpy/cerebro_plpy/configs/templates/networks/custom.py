"""A user's network as a template: the layers between the columns of a table and the prediction.

Its input is a row of numbers: the standardized and clipped numbers of the table, the indicators of
missing values, the embedded categories, and the encoded wide columns. If a table has nothing but an
array, the input may also have the shape of the array. The network can therefore be trained,
searched, explained and put into ensembles like other templates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from cerebro_plpy.configs.architecture.architecture import (
    Architecture,
    check_architecture,
    read_architecture,
)
from cerebro_plpy.configs.architecture.model_shapes import ends_in_softmax
from cerebro_plpy.configs.templates.common_fields import make_learning_rate, make_weight_decay
from cerebro_plpy.configs.templates.layers import blocks, embeddings, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, NetworkTemplate, Params
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter
from cerebro_plpy.nouns import count_nouns

NAME = "body"
NETWORK = "network"
"""Name of the user's network as a layer of the models that contain it."""
MIN_KERAS_VERSION = 3
"""Oldest version of Keras whose JSON may be part of another model's JSON."""

Json = Mapping[str, Any]


def wrap_network(name: str, text: str) -> NetworkTemplate:
    """Return the template whose models contain this network.

    Args:
        text: Keras' JSON of the network.
    """
    network = read_architecture(text)
    summary = check_architecture(network)
    assert isinstance(network, dict)
    version = str(network.get("keras_version", MIN_KERAS_VERSION))
    if int(version.split(".")[0]) < MIN_KERAS_VERSION:
        raise FeatureNotSupported(
            f"{name} was written by Keras {version}; expected one of Keras {MIN_KERAS_VERSION}.",
            hint="Load what model.to_json() of Keras 3 gives.",
        )
    inputs = len(summary.input_shapes)
    outputs = len(summary.output_units)
    if inputs != 1 or outputs != 1:
        raise InvalidParameter(
            f"{name} has {count_nouns(inputs, 'input')} and {count_nouns(outputs, 'output')}; "
            "expected one of each.",
            hint="Its one input receives all columns of a row.",
        )
    return NetworkTemplate(
        name=name,
        meaning="A network that was loaded by load_keras_model",
        fields=(
            make_learning_rate(0.001, 1e-4, 1e-2),
            *FIT_FIELDS,
            make_weight_decay(0.0, 1e-6, 0.1),
        ),
        architecture=partial(_architecture, name, network, summary),
    )


def extract_network(text: str) -> str:
    """Extract the user's network from the JSON of a model that contains it."""
    layers = json.loads(text)["config"]["layers"]
    (network,) = (layer for layer in layers if layer["name"] == NETWORK)
    return json.dumps({name: network[name] for name in ("module", "class_name", "config")})


def _architecture(
    name: str, network: Json, summary: Architecture, table: Table, head: Head, params: Params
) -> str:
    graph = Graph(NAME)
    x = _add_inputs(graph, table, params, summary.input_shapes[0])
    _check(name, summary, x, head)
    output = graph.model(NETWORK, network, [x], (head.units,))
    if isinstance(head, Classes) and ends_in_softmax(network):
        return graph.to_json(
            graph.layer("Reshape", blocks.OUTPUT, output, output.shape, target_shape=[head.units])
        )
    return graph.to_json(blocks.add_prediction(graph, output, head))


def _add_inputs(
    graph: Graph, table: Table, params: Params, shape: tuple[int | None, ...]
) -> Tensor:
    """Return the only array of a table in its shape, if the network takes that; else numbers."""
    has_other_columns = table.columns or table.cardinalities
    if len(table.wide) == 1 and not has_other_columns:
        (wide,) = table.wide
        if not wide.levels and shape == wide.shape:
            return encoders.add_array_input(graph, 1, wide)
    return embeddings.plain_columns(graph, table, params)


def _check(name: str, summary: Architecture, x: Tensor, head: Head) -> None:
    """Check that the shapes of the network's input and output fit the table."""
    (shape,) = summary.input_shapes
    (units,) = summary.output_units
    if shape != x.shape:
        raise InvalidParameter(
            f"{name} takes rows of shape {json.dumps(shape)}; the columns of a row come to "
            f"{json.dumps(x.shape)}.",
            hint=f"Load one whose input has batch_shape {json.dumps([None, *x.shape])}, or choose "
            "other columns.",
        )
    if units != head.units:
        noun = "class" if isinstance(head, Classes) else "number"
        received = "an unknown number of" if units is None else units
        raise InvalidParameter(
            f"{name} gives {count_nouns(received, 'number')}; "
            f"expected {head.units}, for the target has {count_nouns(head.units, noun)}.",
            hint="The last layer that has units decides it.",
        )
