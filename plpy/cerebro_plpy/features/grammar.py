"""What the values of a recipe are made of, as JSON may have them: each is checked where it is read.

Raises DataCorrupted for what is no part of a recipe, whatever it is.
"""

from __future__ import annotations

from typing import Any

from cerebro_plpy.database.names import check_name
from cerebro_plpy.errors import DataCorrupted, InvalidName

LARGEST = 1e300
"""No constant is larger: then nothing that is computed of it is infinite."""


def finite(value: object) -> bool:
    """A number that is computed with."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def column(value: object) -> str:
    """The name of a column."""
    name = text(value, "column")
    try:
        check_name(name)
    except InvalidName as error:
        raise wrong("column", value, "the name of a column") from error
    return name


def text(value: object, what: str) -> str:
    """A text that PostgreSQL can hold."""
    if not isinstance(value, str) or "\0" in value:
        raise wrong(what, value, "a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong(what, ascii(value), "a text of Unicode characters") from error
    return value


def whole(value: object, what: str, most: int) -> int:
    """A whole number from 1 on."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise wrong(what, value, f"a whole number from 1 to {most}")
    return value


def flag(value: object, what: str = "missing") -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong(what, value, "true or false")
    return value


def choice(value: object, what: str, choices: tuple[str, ...]) -> str:
    """One of these texts."""
    if not isinstance(value, str) or value not in choices:
        raise wrong(what, value, f"one of {', '.join(choices)}")
    return value


def record(value: object, what: str, *names: str) -> dict[str, Any]:
    """An object with these members and no others."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise wrong(what, value, f"an object with {', '.join(names)}")
    return value


def wrong(what: str, value: object, expected: str) -> DataCorrupted:
    """The error of what is no part of a recipe."""
    return DataCorrupted(
        f"the recipe of the model is damaged: {what} is {value!r:.100}; expected {expected}",
        hint="Train the model again.",
    )
