"""Marks that hold for some values of a test's parameters."""

from __future__ import annotations

from collections.abc import Mapping


def matches(wanted: Mapping[str, object], params: Mapping[str, object]) -> bool:
    """Whether each parameter that is named has that value, or one of those."""
    return all(params[name] in (value if isinstance(value, tuple) else (value,)) for name, value in wanted.items())
