"""The check of an architecture by its JSON alone, because the backend never imports Keras.

Every object in the JSON that names a class must be in a place where Keras writes such an object,
and the class must be allowed there. The trainer enforces the same list when it builds a network;
this check is earlier.
"""

from __future__ import annotations

import hashlib
import json
import re

from cerebro_plpy.configs.architecture.allowlist import (
    ACTIVATIONS,
    CONSTRAINTS,
    INITIALIZERS,
    LAYERS,
    MODELS,
    OLD_ACTIVATIONS,
    OLD_LAYERS,
    OPERATIONS,
    REGULARIZERS,
    hub_hint,
    hub_module,
    is_of_hub,
)
from cerebro_plpy.configs.architecture.model_shapes import (
    Node,
    Shape,
    list_input_shapes,
    list_output_names,
    list_output_units,
    unreadable,
)
from cerebro_plpy.configs.architecture.size_limits import check_sizes
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter
from cerebro_plpy.limits import ARCHITECTURE_CHARACTERS, ARCHITECTURE_VALUES, NETWORK_LAYERS, check
from cerebro_plpy.records import dataclass

# Real models are less deep; this bounds the recursion here and in every later reader.
MAX_DEPTH = 100


@dataclass(frozen=True)
class Architecture:
    """The properties of a model that the backend reads without building it."""

    input_shapes: tuple[Shape, ...]  # without the batch dimension
    output_units: tuple[int | None, ...]  # None if unknown
    output_names: tuple[str, ...]
    class_names: frozenset[str]  # of layers and operations
    sha256: str  # of the JSON with sorted keys and without spaces


def read_architecture(text: str) -> object:
    """Parse the JSON of an architecture.

    Raises:
        InvalidText: the text is not JSON.
        InvalidParameter: the text is too large.
    """
    check("the number of characters of the architecture", len(text), ARCHITECTURE_CHARACTERS)
    values = sum(map(text.count, ",[{"))  # an upper bound, as these may also be within a text
    check("the number of values of the architecture", values, ARCHITECTURE_VALUES)
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise unreadable(str(error)) from error
    return value


def check_architecture(architecture: object) -> Architecture:
    """Return the properties of an architecture, after a check that it may be loaded.

    Raises:
        InvalidText: the value is not an architecture.
        FeatureNotSupported: a class is not allowed.
        InvalidParameter: a size is beyond the limits, or the input shape is unknown.
    """
    if not isinstance(architecture, dict) or not isinstance(architecture.get("class_name"), str):
        raise unreadable(f"it is not an object with a class_name but {str(architecture)[:80]!r}")
    if architecture["class_name"] not in MODELS:
        raise _refused(architecture, "as the model")
    check("the number of layers", _count_layers(architecture), NETWORK_LAYERS)
    class_names: set[str] = set()
    _check_value(architecture, "layer", class_names, 0)
    canonical = json.dumps(architecture, sort_keys=True, separators=(",", ":"))
    return Architecture(
        input_shapes=list_input_shapes(architecture),
        output_units=list_output_units(architecture),
        output_names=list_output_names(architecture),
        class_names=frozenset(class_names),
        sha256=hashlib.sha256(canonical.encode()).hexdigest(),
    )


def _count_layers(architecture: Node) -> int:
    """Count the layers of a model and of all models within it."""
    unread: list[object] = [architecture]
    count = 0
    while unread:
        value = unread.pop()
        if isinstance(value, dict):
            count += sum(
                isinstance(value.get(key), list) and len(value[key]) for key in ("layers", "config")
            )
            unread += value.values()
        elif isinstance(value, list):
            unread += value
    return count


# The role of a value, by its key.
_ROLES = {
    # These are not built: a run compiles with its own parameters, and shapes follow from the
    # inputs.
    **dict.fromkeys(("compile_config", "build_config"), "unread"),
    **dict.fromkeys(
        ("layers", "layer", "forward_layer", "backward_layer", "cell", "cells"), "layer"
    ),
    **dict.fromkeys(("inbound_nodes", "args", "kwargs"), "argument"),
    "activation": "activation",
    "dtype": "dtype",
}
# The role of a value, by the end of its key.
_ROLES_BY_SUFFIX = {
    "initializer": "initializer",
    "_regularizer": "regularizer",
    "_constraint": "constraint",
    "_activation": "activation",
    "input_shape": "shape",
    "batch_shape": "shape",
}
_ALLOWED = {
    "layer": LAYERS | OLD_LAYERS.keys() | {*MODELS},
    "activation": LAYERS | OLD_LAYERS.keys(),
    "initializer": INITIALIZERS,
    "regularizer": REGULARIZERS,
    "constraint": CONSTRAINTS,
    "argument": frozenset(
        {"__keras_tensor__", "__tensor__", "__numpy__", "__slice__", "__ellipsis__"}
    ),
    "dtype": frozenset({"DTypePolicy", "FloatDTypePolicy", "Policy", "PolicyV1"}),
    "shape": frozenset({"TensorShape"}),
    "value": frozenset[str](),
}
_MODULE = re.compile(r"(tensorflow\.|tf_)?keras(\.\w+)*")


def _check_value(value: object, role: str, class_names: set[str], depth: int) -> None:
    """Check a value and all values within it; add the classes of layers to `class_names`."""
    if depth > MAX_DEPTH:
        raise InvalidParameter(f"the architecture is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list):
        for item in value:
            _check_value(item, role, class_names, depth + 1)
    elif isinstance(value, dict):
        if "class_name" in value and role != "unread":
            _check_object(value, role, class_names)
        for key, item in value.items():
            _check_value(item, _role_of(key, role), class_names, depth + 1)
        if role == "layer" and value.get("class_name") in MODELS:
            check_sizes(value)
    elif isinstance(value, str):
        _check_name(value, role)


def _role_of(key: str, parent_role: str) -> str:
    if key == "config" or parent_role in ("argument", "unread"):
        return parent_role
    if key in _ROLES or not key.replace("_", "a").isalnum():
        return _ROLES.get(key, "value")
    roles = (role for suffix, role in _ROLES_BY_SUFFIX.items() if key.endswith(suffix))
    return next(roles, "value")


def _check_object(node: Node, role: str, class_names: set[str]) -> None:
    name = node["class_name"]
    module = node.get("module")
    if not isinstance(name, str):
        raise unreadable(f"class_name {name!r} is not text")
    if name == "function" and role == "activation" and isinstance(node.get("config"), str):
        return  # `_check_name` checks the name of the function
    if role == "layer" and isinstance(module, str) and name in OPERATIONS.get(module, ()):
        class_names.add(name)
        return
    if is_of_hub(node):
        _check_hub(node, role)
        class_names.add(name)
        return
    if module is not None and not (isinstance(module, str) and _MODULE.fullmatch(module)):
        raise _refused(node, f"because its module {module!r} is not part of Keras")
    if node.get("registered_name") not in (None, name):
        raise _refused(node, f"because it is registered as {node['registered_name']!r}")
    if not _is_allowed(name, role):
        raise _refused(node, f"as {role}")
    if role in ("layer", "activation"):
        class_names.add(name)
        _refuse_stateful(node)


def _check_hub(node: Node, role: str) -> None:
    name = node["class_name"]
    config = node.get("config")
    if role != "layer" or hub_module(node) is None:
        raise FeatureNotSupported(
            f"class {name!r} of keras_hub is not allowed as {role}", hint=hub_hint()
        )
    if isinstance(config, dict) and "preset" in config:
        raise FeatureNotSupported(
            f"{name} with the preset {config['preset']!r} is not supported: a trainer downloads "
            "nothing",
            hint="Give the numbers of the network, and its weights by model_weights.",
        )


def _refuse_stateful(node: Node) -> None:
    config = node.get("config")
    if isinstance(config, dict) and config.get("stateful") is True:
        raise FeatureNotSupported(
            f"{node['class_name']} with stateful=True is not supported",
            hint="Rows of a table have no order between batches: build the layer with "
            "stateful=False.",
        )


def _check_name(name: str, role: str) -> None:
    if role == "activation" and name not in ACTIVATIONS | OLD_ACTIVATIONS.keys():
        raise FeatureNotSupported(
            f"activation {name!r} is not allowed", hint=near_matches(name, ACTIVATIONS)
        )
    is_by_name = role in ("initializer", "regularizer", "constraint")
    if is_by_name and not _is_allowed(name, role):
        raise _refused({"class_name": name}, f"as {role}")


def _is_allowed(name: str, role: str) -> bool:
    """Return True if a class is allowed in a role; Keras 2 also wrote names in snake case."""
    if role in ("initializer", "regularizer", "constraint"):
        return name.replace("_", "").lower() in {allowed.lower() for allowed in _ALLOWED[role]}
    return name in _ALLOWED[role]


def _refused(node: Node, reason: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"class {node['class_name']!r} is not allowed {reason}",
        hint="Allowed are Keras' own layers that neither hold code nor read files; "
        "no Lambda, no look-up tables, no custom classes.",
    )


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
