"""Arguments of the functions that run on segments, read with care: who may train may also call them
by hand.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from cerebro_plpy.errors import InvalidParameter, InvalidText, NullNotAllowed

HINT = "cerebro calls this function itself, with what it needs."
DEEPEST = 128  # an architecture, the deepest of what is sent, has at most 100 levels
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
    found = kind(name, value, dict)
    _refuse_depth(name, found)
    return found


def _refuse_depth(name: str, value: Any) -> None:
    """Whoever reads it further calls itself for each level."""
    level = [value]
    for _ in range(DEEPEST):
        inner = (
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, (dict, list))
        )
        level = [item for items in inner for item in items]
    if level:
        raise InvalidParameter(f"{name} is nested more than {DEEPEST} levels deep", hint=HINT)


def kind(name: str, value: Any, expected: type[T]) -> T:
    """A value of one type; true and false are no numbers."""
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise InvalidParameter(f"{name} is {value!r:.100}; expected {expected.__name__}", hint=HINT)
    return value


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`, such as PostgreSQL's integers are."""
    number = kind(name, value, int)
    if not least <= number < 1 << 31:
        raise InvalidParameter(
            f"{name} is {number}; expected a whole number from {least} to 2147483647", hint=HINT
        )
    return number
