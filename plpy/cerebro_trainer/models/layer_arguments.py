"""Rewriting of layers' arguments: plain values, and Keras objects of names and numbers.

Backend and client have this module by symbolic links, so its imports are relative.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from . import allowlist

Json: TypeAlias = Any
Node: TypeAlias = dict[str, Any]

MAX_DEPTH = 24
"""Limit for nested models, wrappers and lists; known networks stay below ten."""
MAX_ABBREVIATION = 80
OBJECT_KINDS = (
    ("initializer", "keras.initializers", allowlist.INITIALIZERS),
    ("_regularizer", "keras.regularizers", allowlist.REGULARIZERS),
    ("_constraint", "keras.constraints", allowlist.CONSTRAINTS),
)
"""Last words of an argument's name, the module of its values, and their classes."""
DTYPES = allowlist.parse_names("""
    float16 bfloat16 float32 float64 mixed_float16 mixed_bfloat16 bool int8 int16 int32 int64 uint8
    uint16 uint32
""")
CALL_FORMS = (None, "__keras_tensor__", "__slice__", "__ellipsis__")
"""Keras' special forms in call arguments that have no value of their own."""
TENSOR_FORMS = ("__tensor__", "__numpy__")


class ArchitectureError(Exception):
    """An architecture that must not be built."""

    def __init__(self, message: str, *, sqlstate: str = "22023", hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint


def rewrite_argument(name: str, argument: Json, depth: int) -> Json:
    """Rewrite an argument of a layer that is not a layer itself."""
    if argument is None:
        return None
    for suffix, module, class_names in OBJECT_KINDS:
        if name.endswith(suffix):
            return _rewrite_object(module, class_names, argument, depth)
    if name.endswith("activation"):
        return _rewrite_activation(argument)
    if name == "dtype":
        return _rewrite_dtype(argument)
    return rewrite_value(argument, depth)


def rewrite_value(value: Json, depth: int) -> Json:
    """Rewrite a plain value, or one of Keras' special forms that are data."""
    check_depth(depth)
    if isinstance(value, list):
        return [rewrite_value(item, depth - 1) for item in value]
    if not isinstance(value, dict):
        return value
    form = value.get("class_name")
    config = value.get("config")
    if form in CALL_FORMS:
        return {key: rewrite_value(item, depth - 1) for key, item in value.items()}
    if form in TENSOR_FORMS and isinstance(config, dict) and config.get("dtype") in DTYPES:
        return {"class_name": form, "config": config}
    raise ArchitectureError(
        f"an argument of class {abbreviate(form)} is not allowed", sqlstate="0A000"
    )


def make_node(module: str, class_name: str, config: Node) -> Node:
    """Return the JSON object of a public class of Keras 3."""
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None}


def abbreviate(value: object) -> str:
    """Format a value for a message, in at most MAX_ABBREVIATION characters."""
    text = repr(value)
    return text if len(text) <= MAX_ABBREVIATION else text[: MAX_ABBREVIATION - 3] + "..."


def check_depth(depth: int) -> None:
    """Raise ArchitectureError if `depth`, the number of levels that may follow, is 0."""
    if depth <= 0:
        raise ArchitectureError(f"the architecture is nested more than {MAX_DEPTH} levels deep")


def _rewrite_object(module: str, class_names: frozenset[str], value: Json, depth: int) -> Node:
    """Rewrite an object, given by its JSON or by its name."""
    name = value
    config = None
    if isinstance(value, dict):
        name = value.get("class_name")
        config = value.get("config")
    by_lower_name = {class_name.lower(): class_name for class_name in class_names}
    class_name = by_lower_name.get(str(name).replace("_", "").lower())
    if class_name is None or not isinstance(config, (dict, type(None))):
        raise ArchitectureError(
            f"{abbreviate(value)} is not in {module}; allowed are {', '.join(sorted(class_names))}"
        )
    arguments = {
        key: rewrite_value(item, depth) for key, item in (config or {}).items() if key != "dtype"
    }
    return make_node(module, class_name, arguments)


def _rewrite_activation(value: Json) -> str:
    if isinstance(value, dict):
        value = value.get("config")
    name = allowlist.OLD_ACTIVATIONS.get(str(value), str(value))
    if name not in allowlist.ACTIVATIONS:
        allowed = ", ".join(sorted(allowlist.ACTIVATIONS))
        raise ArchitectureError(f"activation {abbreviate(name)} is unknown; allowed are {allowed}")
    return name


def _rewrite_dtype(value: Json) -> str:
    name = value
    if isinstance(value, dict):
        config = value.get("config")
        name = isinstance(config, dict) and config.get("name")
    if name not in DTYPES:
        raise ArchitectureError(
            f"dtype {abbreviate(value)} is not supported; supported are {', '.join(sorted(DTYPES))}"
        )
    return str(name)
