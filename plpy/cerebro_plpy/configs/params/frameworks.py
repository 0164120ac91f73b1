"""The frameworks that train, and the argument that selects them."""

from __future__ import annotations

from collections.abc import Iterable

BACKENDS = ("tensorflow", "jax", "torch")
AUTO = "auto"


def list_frameworks(backend: str | None, mst_keys: Iterable[int]) -> dict[int, str]:
    """Return the requested framework by mst_key; empty if frameworks are chosen automatically.

    >>> list_frameworks("jax", [1, 2]), list_frameworks("auto", [1])
    ({1: 'jax', 2: 'jax'}, {})
    """
    if backend == AUTO:
        return {}
    return dict.fromkeys(mst_keys, backend or BACKENDS[0])
