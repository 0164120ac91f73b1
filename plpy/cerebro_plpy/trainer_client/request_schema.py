"""The requests of a backend to its trainer, with the fields of docs/internals/wire.md.

Nothing else reaches a trainer, whatever arguments a session passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Header = dict[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})

FIELDS = {
    "reset": "idle_seconds",
    "open": "dataset cache_bytes",
    "buffer": "dataset buffer_id pass arrays",
    "close": "dataset",
    "block": "rows arrays lengths",
    "pack": "buffer_id seed shapes_only",
    "begin": """
        job program program_key state result_key datasets fit order forms callbacks compilation
        unstored sealed recipe scale calibration buffers block_rows layers total visits beside
        share grows grow_until
        """,
    "state": "sealed",
    "finish": "",
    "state_get": "key chunk_bytes part aside",
    "results": "program program_key sums scale",
    "rows": "rows arrays lengths classes want",
    "outputs": "units chunk_bytes",
    "features": "layer buffer_id arrays",
    "tell": "rows arrays lengths labels whole idle_seconds",
    "permute": """
        dataset rows arrays lengths target columns metric classes repeats seed seconds idle_seconds
        """,
    "attribute": "rows arrays lengths columns patches idle_seconds",
    "suggest": "space algorithm seed trials count",
    "gpus": "",
}
"""The names of a request's fields, separated by spaces, in the order of its header."""


def describe_target(classes: int, is_float: bool = False) -> dict[str, Any]:
    """Describe a target for a trainer: a float, or classes as one-hot columns.

    Args:
        classes: number of classes; 0 for a float.
    """
    if is_float or not classes:
        return {"kind": "float"}
    return {"kind": "onehot", "classes": classes}


def build_request(do: str, fields: Mapping[str, Any] = NOTHING, /, **backend_fields: Any) -> Header:
    """Return the header of a request.

    Args:
        fields: the fields of a session; fields that the request does not have are left out.
        backend_fields: the fields of the backend itself, which take precedence.

    >>> build_request("state_get", {"chunk_bytes": 1000, "do": "reset"})
    {'do': 'state_get', 'chunk_bytes': 1000}
    """
    values = {**fields, **backend_fields}
    return {"do": do, **{name: values[name] for name in FIELDS[do].split() if name in values}}
