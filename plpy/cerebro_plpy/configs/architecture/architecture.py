"""Whether an architecture may be loaded, decided on its JSON alone: the backend never imports
Keras.

Every object in the JSON that names a class must stand in a place where Keras puts such an object
and be listed for it. The trainer rewrites what it builds by the same list; this check tells the
user at once.
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
    input_shapes,
    output_names,
    output_units,
    unreadable,
)
from cerebro_plpy.configs.architecture.size_limits import check_sizes
from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter
from cerebro_plpy.limits import ARCHITECTURE_CHARACTERS, ARCHITECTURE_VALUES, NETWORK_LAYERS, check
from cerebro_plpy.records import dataclass

# Deeper JSON than any model in use has; bounds the recursion here and in every later reader.
MAX_DEPTH = 100


@dataclass(frozen=True)
class Architecture:
    """What the backend needs to know of a model without building it.

    Shapes are without the batch dimension. Of each output there are the units, None where they
    cannot be told, and the name. `sha256` is that of the JSON with sorted keys and without spaces.
    """

    input_shapes: tuple[Shape, ...]
    output_units: tuple[int | None, ...]
    output_names: tuple[str, ...]
    class_names: frozenset[str]
    sha256: str


def read_architecture(text: str) -> object:
    """The JSON value of a text; raises InvalidText where it cannot be read, InvalidParameter where
    it is too large.
    """
    check("the number of characters of the architecture", len(text), ARCHITECTURE_CHARACTERS)
    values = sum(map(text.count, ",[{"))  # or some more, where one of these is within a text
    check("the number of values of the architecture", values, ARCHITECTURE_VALUES)
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise unreadable(str(error)) from error
    return value


def check_architecture(architecture: object) -> Architecture:
    """The summary of an architecture that may be loaded.

    Raises InvalidText where it is no architecture, FeatureNotSupported for classes that are not
    allowed, and InvalidParameter for sizes beyond the limits or an unknown input shape.
    """
    if not isinstance(architecture, dict) or not isinstance(architecture.get("class_name"), str):
        raise unreadable(f"it is not an object with a class_name but {str(architecture)[:80]!r}")
    if architecture["class_name"] not in MODELS:
        raise _refused(architecture, "as the model")
    check("the number of layers", _count_layers(architecture), NETWORK_LAYERS)
    found: set[str] = set()
    _walk(architecture, "layer", found, 0)
    canonical = json.dumps(architecture, sort_keys=True, separators=(",", ":"))
    return Architecture(
        input_shapes=input_shapes(architecture),
        output_units=output_units(architecture),
        output_names=output_names(architecture),
        class_names=frozenset(found),
        sha256=hashlib.sha256(canonical.encode()).hexdigest(),
    )


def _count_layers(architecture: Node) -> int:
    """Return how many layers a model has, with those of models within it, wherever they stand."""
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


# Where an object may stand, by the key under which it is found, and what may stand there.
_PLACES = {
    # Nothing in these is built: a run compiles by its own parameters, and shapes follow from the
    # inputs.
    **dict.fromkeys(("compile_config", "build_config"), "unread"),
    **dict.fromkeys(
        ("layers", "layer", "forward_layer", "backward_layer", "cell", "cells"), "layer"
    ),
    **dict.fromkeys(("inbound_nodes", "args", "kwargs"), "argument"),
    "activation": "activation",
    "dtype": "dtype",
}
# Others are words that end with what they are of.
_ENDINGS = {
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


def _walk(value: object, place: str, found: set[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidParameter(f"the architecture is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list):
        for item in value:
            _walk(item, place, found, depth + 1)
    elif isinstance(value, dict):
        if "class_name" in value and place != "unread":
            _check_object(value, place, found)
        for key, item in value.items():
            _walk(item, _place(key, place), found, depth + 1)
        if place == "layer" and value.get("class_name") in MODELS:
            check_sizes(value)
    elif isinstance(value, str):
        _check_name(value, place)


def _place(key: str, parent: str) -> str:
    if key == "config" or parent in ("argument", "unread"):
        return parent
    if key in _PLACES or not key.replace("_", "a").isalnum():
        return _PLACES.get(key, "value")
    return next((place for ending, place in _ENDINGS.items() if key.endswith(ending)), "value")


def _check_object(node: Node, place: str, found: set[str]) -> None:
    name, module = node["class_name"], node.get("module")
    if not isinstance(name, str):
        raise unreadable(f"class_name {name!r} is not text")
    if name == "function" and place == "activation" and isinstance(node.get("config"), str):
        return  # its name is checked where activations given by name are
    if place == "layer" and isinstance(module, str) and name in OPERATIONS.get(module, ()):
        found.add(name)
        return
    if is_of_hub(node):
        _check_hub(node, place)
        found.add(name)
        return
    if module is not None and not (isinstance(module, str) and _MODULE.fullmatch(module)):
        raise _refused(node, f"because its module {module!r} is not part of Keras")
    if node.get("registered_name") not in (None, name):
        raise _refused(node, f"because it is registered as {node['registered_name']!r}")
    if not _is_listed(name, place):
        raise _refused(node, f"as {place}")
    if place in ("layer", "activation"):
        found.add(name)
        _refuse_stateful(node)


def _check_hub(node: Node, place: str) -> None:
    name, config = node["class_name"], node.get("config")
    if place != "layer" or hub_module(node) is None:
        raise FeatureNotSupported(
            f"class {name!r} of keras_hub is not allowed as {place}", hint=hub_hint()
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


def _check_name(name: str, place: str) -> None:
    if place == "activation" and name not in ACTIVATIONS | OLD_ACTIVATIONS.keys():
        raise FeatureNotSupported(
            f"activation {name!r} is not allowed", hint=near_matches(name, ACTIVATIONS)
        )
    if place in ("initializer", "regularizer", "constraint") and not _is_listed(name, place):
        raise _refused({"class_name": name}, f"as {place}")


def _is_listed(name: str, place: str) -> bool:
    """Whether the class may stand there; Keras 2 also wrote `glorot_uniform` for GlorotUniform."""
    if place in ("initializer", "regularizer", "constraint"):
        return name.replace("_", "").lower() in {known.lower() for known in _ALLOWED[place]}
    return name in _ALLOWED[place]


def _refused(node: Node, why: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"class {node['class_name']!r} is not allowed {why}",
        hint="Allowed are Keras' own layers that neither hold code nor read files; "
        "no Lambda, no look-up tables, no custom classes.",
    )


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
