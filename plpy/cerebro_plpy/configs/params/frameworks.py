"""The frameworks that train, and which of them a call asks for."""

from __future__ import annotations

from collections.abc import Iterable

BACKENDS = ("tensorflow", "jax", "torch")
AUTO = "auto"


def frameworks_of(backend: str | None, mst_keys: Iterable[int]) -> dict[int, str]:
    """The frameworks that the argument names; none where they are to be chosen.

    >>> frameworks_of("jax", [1, 2]), frameworks_of("auto", [1])
    ({1: 'jax', 2: 'jax'}, {})
    """
    return {} if backend == AUTO else dict.fromkeys(mst_keys, backend or BACKENDS[0])
