"""A network that somebody loaded as a template: what stands between the columns of a table and what
is predicted.

It takes a row of numbers: those of the table, centred, scaled and clipped, then what tells that
some are missing, then what categories and columns of their own come to. Or, where a table has
nothing but an array, that array in its shape. So it is trained, searched, explained and put into
ensembles as other templates are.
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
from cerebro_plpy.configs.search_space.distributions import Range
from cerebro_plpy.configs.templates.layers import blocks, embeddings, encoders
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head, Table
from cerebro_plpy.configs.templates.template import FIT_FIELDS, Field, Params, Template
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter

NAME = "body"
NETWORK = "network"
"""What the loaded one is called in the networks that have it in them."""
OLDEST = 3
"""The version of Keras whose JSON may stand within that of another model."""

Json = Mapping[str, Any]


def body(name: str, text: str) -> Template:
    """The template of that name whose networks have this one in them; it is Keras' JSON."""
    network = read_architecture(text)
    summary = check_architecture(network)
    assert isinstance(network, dict)
    if int(str(network.get("keras_version", OLDEST)).split(".")[0]) < OLDEST:
        raise FeatureNotSupported(
            f"{name} was written by Keras {network['keras_version']}; expected one of Keras "
            f"{OLDEST}.",
            hint="Load what model.to_json() of Keras 3 gives.",
        )
    ends = len(summary.input_shapes), len(summary.output_units)
    if ends != (1, 1):
        raise InvalidParameter(
            f"{name} has {ends[0]} inputs and {ends[1]} outputs; expected one of each.",
            hint="It is given all columns of a row in one input.",
        )
    return Template(
        name=name,
        meaning="A network that was loaded by load_keras_model",
        fields=(
            Field("lr", "The learning rate", 0.001, Range(1e-4, 1e-2, "log"), limits=(1e-8, 100.0)),
            *FIT_FIELDS,
            Field(
                "weight_decay",
                "How fast weights shrink, times lr",
                0.0,
                Range(1e-6, 0.1, "log"),
                limits=(0.0, 10.0),
            ),
        ),
        architecture=partial(_architecture, name, network, summary),
        optimizer={"learning_rate": "lr", "weight_decay": "weight_decay"},
    )


def loaded(text: str) -> str:
    """The network that somebody has loaded, out of the JSON of one that has it in it."""
    (found,) = (each for each in json.loads(text)["config"]["layers"] if each["name"] == NETWORK)
    return json.dumps({name: found[name] for name in ("module", "class_name", "config")})


def _architecture(
    name: str, network: Json, summary: Architecture, table: Table, head: Head, params: Params
) -> str:
    graph = Graph(NAME)
    x = _row(graph, table, params, summary.input_shapes[0])
    _check(name, summary, x, head)
    answer = graph.model(NETWORK, network, [x], (head.units,))
    if isinstance(head, Classes) and ends_in_softmax(network):
        return graph.text(
            graph.layer("Reshape", blocks.OUTPUT, answer, answer.shape, target_shape=[head.units])
        )
    return graph.text(blocks.prediction(graph, answer, head))


def _row(graph: Graph, table: Table, params: Params, shape: tuple[int | None, ...]) -> Tensor:
    """All that is known of a row: an array in its shape, where that is all and is wanted so, or
    numbers.
    """
    alone = len(table.wide) == 1 and not (
        table.columns or table.cardinalities or table.wide[0].levels
    )
    if alone and shape == table.wide[0].shape:
        return encoders.shaped(graph, 1, table.wide[0])
    return embeddings.plain_columns(graph, table, params)


def _check(name: str, summary: Architecture, x: Tensor, head: Head) -> None:
    (shape,), (units,) = summary.input_shapes, summary.output_units
    if shape != x.shape:
        raise InvalidParameter(
            f"{name} takes rows of shape {json.dumps(shape)}; the columns of a row come to "
            f"{json.dumps(x.shape)}.",
            hint=f"Load one whose input has batch_shape {json.dumps([None, *x.shape])}, or choose "
            "other columns.",
        )
    if units != head.units:
        what = "classes" if isinstance(head, Classes) else "number"
        raise InvalidParameter(
            f"{name} gives {'an unknown number of' if units is None else units} numbers; expected "
            f"{head.units}, for the target has {head.units} {what}.",
            hint="The last layer that has units decides it.",
        )
