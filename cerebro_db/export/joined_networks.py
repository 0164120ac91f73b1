"""Join the networks of a version's members to one Keras model, which returns their weighted sum.

Exports have a single network; the database predicts with the members themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_db.errors import FeatureNotSupported, InvalidText

NAME = "ensemble"
OUTPUT = "prediction"
TREES = "BoostedTrees"
OPERATIONS = "keras.src.ops.numpy"
FUNCTIONAL = "keras.src.models.functional"
Node = dict[str, Any]


class Member(NamedTuple):
    """A member of a version."""

    architecture: str  # JSON
    share: float  # of the prediction


def join_networks(members: Sequence[Member], units: int) -> str:
    """Return the JSON of the network that adds up the outputs of members times their shares.

    Args:
        members: networks with the same inputs.
        units: width of the members' outputs.

    Raises:
        FeatureNotSupported: a member is not a network.
        InvalidText: the architecture of a member is not that of a functional model.
    """
    networks = [_parse_network(member.architecture) for member in members]
    shape = (None, units)
    inputs = _copy_inputs(networks[0])
    tensors = [
        _make_tensor(
            node["name"], node["config"]["batch_shape"], node["config"].get("dtype", "float32")
        )
        for node in inputs
    ]
    names: list[Any] = [[node["name"], 0, 0] for node in inputs]
    arguments: list[Any] = [tensors]
    if len(inputs) == 1:  # Keras does not wrap a single input
        arguments = tensors
        (names,) = names
    layers = [*inputs]
    total: Node | None = None
    for number, (network, member) in enumerate(zip(networks, members, strict=True), 1):
        config = {**network["config"], "name": f"member_{number}"}
        layers.append(_make_node((FUNCTIONAL, "Functional"), config, arguments))
        output = _make_tensor(config["name"], shape)
        product = {"name": f"multiply_{number}"}
        layers.append(_make_node((OPERATIONS, "Multiply"), product, [output, member.share]))
        term = _make_tensor(product["name"], shape)
        if total is None:
            total = term
            continue
        addition = {"name": f"add_{number}"}
        layers.append(_make_node((OPERATIONS, "Add"), addition, [total, term]))
        total = _make_tensor(addition["name"], shape)
    reshape = {"name": OUTPUT, "target_shape": [units]}
    layers.append(_make_node(("keras.layers", "Reshape"), reshape, [total]))
    config = {
        "name": NAME,
        "trainable": True,
        "layers": layers,
        "input_layers": names,
        "output_layers": [OUTPUT, 0, 0],
    }
    node = {
        "module": FUNCTIONAL,
        "class_name": "Functional",
        "registered_name": "Functional",
        "config": config,
    }
    return json.dumps(node)


def _parse_network(text: str) -> Node:
    network = json.loads(text)
    if isinstance(network, dict):
        config = network.get("config")
        if network.get("class_name") == TREES:
            raise FeatureNotSupported(
                "the version adds up several members, and boosted trees are among them: only "
                "networks are joined to one model",
                hint="cerebro-db export model writes a file with all members, for another "
                "database.",
            )
        if isinstance(config, Mapping) and config.get("input_layers"):
            return network
    raise InvalidText(
        f"a member of the version is not a functional model but {text:.100}",
        hint="Train the model again.",
    )


def _copy_inputs(network: Node) -> list[Node]:
    """Return input layers like those of a network, in the same order."""
    config = network["config"]
    layers = {layer["config"]["name"]: layer for layer in config["layers"]}
    entries = config["input_layers"]
    if not isinstance(entries[0], list):  # Keras does not wrap a single input
        entries = [entries]
    return [{**layers[name], "name": name, "inbound_nodes": []} for name, *_ in entries]


def _make_node(kind: tuple[str, str], config: Node, arguments: Sequence[Any]) -> Node:
    """Return a layer that is called once.

    Args:
        kind: module and name of its class.
    """
    module, class_name = kind
    return {
        "module": module,
        "class_name": class_name,
        "config": config,
        "registered_name": None,
        "name": config["name"],
        "inbound_nodes": [{"args": list(arguments), "kwargs": {}}],
    }


def _make_tensor(layer: str, shape: Sequence[int | None], dtype: str = "float32") -> Node:
    """Return a reference to the output of a layer."""
    config = {"shape": list(shape), "dtype": dtype, "keras_history": [layer, 0, 0]}
    return {"class_name": "__keras_tensor__", "config": config}
