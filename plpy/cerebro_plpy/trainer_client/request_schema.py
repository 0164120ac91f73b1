"""What a backend may ask of its trainer: every request with its fields, as docs/wire.md describes
them.

Whatever a session says by hand, nothing else reaches a trainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Header = dict[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})

FIELDS: dict[str, tuple[str, ...]] = {
    "reset": ("idle_seconds",),
    "open": ("dataset", "cache_bytes"),
    "buffer": ("dataset", "buffer_id", "pass", "arrays"),
    "close": ("dataset",),
    "block": ("rows", "arrays", "lengths"),
    "pack": ("buffer_id", "seed", "shapes_only"),
    "begin": (
        "job", "program", "program_key", "state", "result_key", "datasets", "fit", "order", "forms",
        "callbacks",
        "compilation", "unstored", "sealed", "recipe", "buffers", "block_rows", "layers", "total",
        "visits", "beside",
    ),
    "state": ("sealed",),
    "finish": (),
    "state_get": ("key", "chunk_bytes", "part", "aside"),
    "results": ("program", "program_key", "sums"),
    "rows": ("rows", "arrays", "lengths", "classes", "want"),
    "outputs": ("units", "chunk_bytes"),
    "features": ("layer", "buffer_id", "arrays"),
    "tell": ("rows", "arrays", "lengths", "labels", "whole", "idle_seconds"),
    "permute": (
        "dataset", "rows", "arrays", "lengths", "target", "columns", "metric", "classes", "repeats",
        "seed", "seconds",
        "idle_seconds",
    ),
    "attribute": ("rows", "arrays", "lengths", "columns", "patches", "idle_seconds"),
    "suggest": ("space", "algorithm", "seed", "trials", "count"),
    "gpus": (),
}  # fmt: skip


def request(do: str, fields: Mapping[str, Any] = NOTHING, /, **own: Any) -> Header:
    """The header of a request; `own` are fields that the backend itself says, whatever a session
    said.

    >>> request("state_get", {"chunk_bytes": 1000, "do": "reset"})
    {'do': 'state_get', 'chunk_bytes': 1000}
    """
    values = {**fields, **own}
    return {"do": do, **{name: values[name] for name in FIELDS[do] if name in values}}
