"""Checks of the arguments of functions on segments.

A role that may train may also call these functions directly, with any arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import InvalidParameter, InvalidText, NullNotAllowed

HINT = "cerebro calls this function itself, with what it needs."
MAX_DEPTH = 128  # an architecture, the most deeply nested argument, has at most 100 levels
T = TypeVar("T")


def require(name: str, value: T | None) -> T:
    """Return a value that must not be NULL."""
    if value is None:
        raise NullNotAllowed(f"{name} is NULL", hint=HINT)
    return value


def parse_object(name: str, text: str | None) -> JsonObject:
    """Return a JSON object.

    >>> parse_object("spec", '{"a": 1}')
    {'a': 1}
    """
    try:
        value = json.loads(require(name, text))
    except (ValueError, RecursionError) as error:
        raise InvalidText(f"{name} cannot be read as JSON: {error}", hint=HINT) from error
    parsed = check_type(name, value, dict)
    _check_depth(name, parsed)
    return parsed


def _check_depth(name: str, value: Any) -> None:
    """Refuse deep nesting: later readers recurse once per level."""
    level = [value]
    for _ in range(MAX_DEPTH):
        children: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                children += item.values()
            elif isinstance(item, list):
                children += item
        level = children
    if level:
        raise InvalidParameter(f"{name} is nested more than {MAX_DEPTH} levels deep", hint=HINT)


def check_type(name: str, value: Any, expected: type[T]) -> T:
    """Return a value that must have a type; true and false are not numbers."""
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise InvalidParameter(f"{name} is {value!r:.100}; expected {expected.__name__}", hint=HINT)
    return value


def read_field(fields: Mapping[str, Any], name: str, expected: type[T]) -> T:
    """Return a field of an object, which must have a type."""
    return check_type(name, fields.get(name), expected)


def optional_text(value: object) -> str | None:
    """Return a value as text; None for NULL."""
    if value is None:
        return None
    return str(value)


def check_integer(name: str, value: Any, minimum: int = 0) -> int:
    """Return a whole number from `minimum` to the largest of PostgreSQL's integers."""
    number = check_type(name, value, int)
    if not minimum <= number < 1 << 31:
        raise InvalidParameter(
            f"{name} is {number}; expected a whole number from {minimum} to 2147483647", hint=HINT
        )
    return number
