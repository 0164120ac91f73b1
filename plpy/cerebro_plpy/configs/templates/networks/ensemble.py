"""Several networks over one table as one: their predictions, weighed and added up.

So an ensemble is predicted with, exported and explained like any other model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor

NAME = "ensemble"


class Member(NamedTuple):
    """A network by its JSON, and how much of the prediction is its."""

    architecture: str
    share: float


def architecture(members: Sequence[Member], units: int) -> str:
    """The network that gives the weighted sum of what members give; all have the same inputs."""
    graph = Graph(NAME)
    parsed = [json.loads(member.architecture) for member in members]
    inputs = _inputs(graph, parsed[0]["config"])
    terms = [
        graph.operation(
            "Multiply", graph.model(f"member_{number}", network, inputs, (units,)), member.share
        )
        for number, (network, member) in enumerate(zip(parsed, members), 1)
    ]
    return graph.text(
        graph.layer(
            "Reshape", "prediction", blocks.added(graph, terms), (units,), target_shape=[units]
        )
    )


def _inputs(graph: Graph, config: Mapping[str, Any]) -> list[Tensor]:
    """Inputs like those of a member, in the order of its own."""
    layers = {layer["name"]: layer["config"] for layer in config["layers"]}
    listed = config["input_layers"]
    names = [name for name, *_ in (listed if isinstance(listed[0], list) else [listed])]
    return [
        graph.input(name, tuple(layers[name]["batch_shape"][1:]), layers[name]["dtype"])
        for name in names
    ]
