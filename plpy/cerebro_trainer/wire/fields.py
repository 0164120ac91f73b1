"""Typed access to the fields of a request, so that a wrong field is an error with its name.

Each function raises RequestError if the field is missing or has another type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from cerebro_trainer.errors import RequestError

T = TypeVar("T")
Header: TypeAlias = Mapping[str, Any]
"""The header of a request, or a JSON object in it."""


def typed(header: Header, name: str, kind: type[T]) -> T:
    """Return a required field of a JSON type (a bool is not an int)."""
    if name not in header:
        raise RequestError(f'the request lacks "{name}"')
    value = header[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RequestError(f'"{name}" must be {kind.__name__}, received {value!r}'[:300])
    return value


def integer(header: Header, name: str, minimum: int | None = None) -> int:
    """Return an integer of 64 bits, at least `minimum`."""
    value = typed(header, name, int)
    if not -(1 << 63) <= value < 1 << 63:
        raise RequestError(f'"{name}" must be an integer of 64 bits, received {value}')
    if minimum is not None and value < minimum:
        raise RequestError(f'"{name}" must be at least {minimum}, received {value}')
    return value


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(header: Header, name: str) -> float:
    """Return an integer or a float as a float."""
    if type(header.get(name)) is int:
        return float(integer(header, name))
    return typed(header, name, float)


def text(header: Header, name: str, choices: Sequence[str] = ()) -> str:
    """Return a text, one of `choices` if there are any."""
    value = typed(header, name, str)
    if choices and value not in choices:
        raise RequestError(f'"{name}" must be one of {", ".join(choices)}; received {value!r}')
    return value


def record(header: Header, name: str) -> dict[str, Any]:
    """Return a JSON object."""
    return typed(header, name, dict)


def optional(header: Header, name: str, read: Callable[[Header, str], T]) -> T | None:
    """Return a field that `read` reads; None if it is missing or null."""
    if header.get(name) is None:
        return None
    return read(header, name)


def if_present(header: Header, name: str, read: Callable[[Header, str], T]) -> T | None:
    """Return a field that `read` reads; None if it is missing."""
    if name not in header:
        return None
    return read(header, name)


def items(header: Header, name: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects."""
    values = typed(header, name, list)
    if not all(isinstance(value, dict) for value in values):
        raise RequestError(f'"{name}" must be a list of objects')
    return values


def list_of(header: Header, name: str, read: Callable[[Header, str], T]) -> list[T]:
    """Return a list of values, each of which `read` reads."""
    return [read({name: value}, name) for value in typed(header, name, list)]


def texts(header: Header, name: str) -> list[str]:
    """Return a list of texts."""
    return list_of(header, name, text)


def integers(header: Header, name: str) -> list[int]:
    """Return a list of integers of 64 bits."""
    return list_of(header, name, integer)
