"""Several networks over one table, joined to one that returns their weighted sum.

An ensemble can therefore be used, exported and explained like any other model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor

NAME = "ensemble"


class Member(NamedTuple):
    """A network of an ensemble."""

    architecture: str  # JSON
    share: float  # weight of its prediction


def build_architecture(members: Sequence[Member], units: int) -> str:
    """Return the network with the weighted sum of its members, all of which have the same inputs.

    Args:
        units: width of the members' outputs.
    """
    graph = Graph(NAME)
    networks = [json.loads(member.architecture) for member in members]
    inputs = _copy_inputs(graph, networks[0]["config"])
    terms = []
    for number, (network, member) in enumerate(zip(networks, members), 1):
        output = graph.model(f"member_{number}", network, inputs, (units,))
        terms.append(graph.multiply(output, member.share))
    total = blocks.add_up(graph, terms)
    return graph.to_json(
        graph.layer("Reshape", blocks.OUTPUT, total, (units,), target_shape=[units])
    )


def _copy_inputs(graph: Graph, config: Mapping[str, Any]) -> list[Tensor]:
    """Add inputs like those of a member, in the same order."""
    layers = {layer["name"]: layer["config"] for layer in config["layers"]}
    entries = config["input_layers"]
    if not isinstance(entries[0], list):  # Keras does not wrap a single input
        entries = [entries]
    return [
        graph.input(name, tuple(layers[name]["batch_shape"][1:]), layers[name]["dtype"])
        for name, *_ in entries
    ]
