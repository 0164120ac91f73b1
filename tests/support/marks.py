"""Marks that apply to some values of a test's parameters."""

from __future__ import annotations

from collections.abc import Mapping


def matches(wanted: Mapping[str, object], params: Mapping[str, object]) -> bool:
    """Return whether each parameter in `wanted` has the wanted value, or one of a tuple of
    values.
    """
    return all(
        params[name] in (value if isinstance(value, tuple) else (value,))
        for name, value in wanted.items()
    )
