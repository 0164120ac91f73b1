"""Arguments of layers, rewritten as data: plain values, and Keras objects that are but names and
numbers.

The client has this module, too, by a link (`cerebro_db/export/architecture`), and so its imports
are relative.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from . import allowlist

Json: TypeAlias = Any
Node: TypeAlias = dict[str, Any]

MAX_DEPTH = 24
"""Nested models, wrappers and lists; real networks stay below ten."""
KINDS = (
    ("initializer", "keras.initializers", allowlist.INITIALIZERS),
    ("_regularizer", "keras.regularizers", allowlist.REGULARIZERS),
    ("_constraint", "keras.constraints", allowlist.CONSTRAINTS),
)
DTYPES = allowlist.names("""
    float16 bfloat16 float32 float64 mixed_float16 mixed_bfloat16 bool int8 int16 int32 int64 uint8
    uint16 uint32""")
PLAIN_CALLS = (None, "__keras_tensor__", "__slice__", "__ellipsis__")
"""Keras' special forms in call arguments that stand for no value of their own."""


class ArchitectureError(Exception):
    """An architecture that must not be built, and why."""

    def __init__(self, message: str, *, sqlstate: str = "22023", hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint


def value(key: str, old: Json, depth: int) -> Json:
    """The value of a layer's argument `key`, which is no layer itself."""
    if old is None:
        return None
    for suffix, module, names in KINDS:
        if key.endswith(suffix):
            return _object(module, names, old, depth)
    if key.endswith("activation"):
        return _activation(old)
    return _dtype(old) if key == "dtype" else plain(old, depth)


def plain(old: Json, depth: int) -> Json:
    """Plain values, and of Keras' special forms those that are data."""
    check_depth(depth)
    if isinstance(old, list):
        return [plain(item, depth - 1) for item in old]
    if not isinstance(old, dict):
        return old
    special, config = old.get("class_name"), old.get("config")
    if special in PLAIN_CALLS:
        return {key: plain(item, depth - 1) for key, item in old.items()}
    if (
        special in ("__tensor__", "__numpy__")
        and isinstance(config, dict)
        and config.get("dtype") in DTYPES
    ):
        return {"class_name": special, "config": config}
    raise ArchitectureError(
        f"an argument of class {short(special)} is not allowed", sqlstate="0A000"
    )


def node(module: str, class_name: str, config: Node) -> Node:
    """A Keras 3 object of a public class."""
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None}


def short(value: object) -> str:
    """A value in at most 80 characters, for messages."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def check_depth(depth: int) -> None:
    """Raise ArchitectureError when no levels of nesting are left."""
    if depth <= 0:
        raise ArchitectureError(f"the architecture is nested more than {MAX_DEPTH} levels deep")


def _object(module: str, names: frozenset[str], value: Json, depth: int) -> Node:
    name, config = (
        (value.get("class_name"), value.get("config")) if isinstance(value, dict) else (value, None)
    )
    found = {known.lower(): known for known in names}.get(str(name).replace("_", "").lower())
    if found is None or not isinstance(config, (dict, type(None))):
        raise ArchitectureError(
            f"{short(value)} is not in {module}; allowed are {', '.join(sorted(names))}"
        )
    arguments = {key: plain(item, depth) for key, item in (config or {}).items() if key != "dtype"}
    return node(module, found, arguments)


def _activation(old: Json) -> str:
    name = str(old.get("config") if isinstance(old, dict) else old)
    name = allowlist.OLD_ACTIVATIONS.get(name, name)
    if name not in allowlist.ACTIVATIONS:
        known = ", ".join(sorted(allowlist.ACTIVATIONS))
        raise ArchitectureError(f"activation {short(name)} is unknown; allowed are {known}")
    return name


def _dtype(value: Json) -> str:
    config = value.get("config") if isinstance(value, dict) else {"name": value}
    name = config.get("name") if isinstance(config, dict) else None
    if name not in DTYPES:
        raise ArchitectureError(
            f"dtype {short(value)} is not supported; supported are {', '.join(sorted(DTYPES))}"
        )
    return str(name)
