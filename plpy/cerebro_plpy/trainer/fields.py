"""Arguments of the functions that run on segments, read with care: who may train may also call them by hand."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from cerebro_plpy.errors import InvalidParameter, InvalidText, NullNotAllowed

HINT = "cerebro calls this function itself, with what it needs."
T = TypeVar("T")


def require(name: str, value: T | None) -> T:
    """A value that must not be NULL."""
    if value is None:
        raise NullNotAllowed(f"{name} is NULL", hint=HINT)
    return value


def record(name: str, text: str | None) -> dict[str, Any]:
    """A JSON object.

    >>> record("spec", '{"a": 1}')
    {'a': 1}
    """
    try:
        value = json.loads(require(name, text))
    except (ValueError, RecursionError) as error:
        raise InvalidText(f"{name} cannot be read as JSON: {error}", hint=HINT) from error
    return kind(name, value, dict)


def kind(name: str, value: Any, expected: type[T]) -> T:
    """A value of one type; true and false are no numbers."""
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise InvalidParameter(f"{name} is {value!r:.100}; expected {expected.__name__}", hint=HINT)
    return value


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`, such as PostgreSQL's integers are."""
    number = kind(name, value, int)
    if not least <= number < 1 << 31:
        raise InvalidParameter(f"{name} is {number}; expected a whole number from {least} to 2147483647", hint=HINT)
    return number
