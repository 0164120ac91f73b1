"""Checks of stored JSON, which the owner of a model could have changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cerebro_plpy.database.sql.identifiers import check_name
from cerebro_plpy.errors import DataCorrupted, InvalidName
from cerebro_plpy.preprocessing.values.column_values import LARGEST

Json = dict[str, Any]
"""A JSON object."""


def wrong(part: str, value: object, expected: str) -> DataCorrupted:
    """Return the error of a recipe of which a part is not as expected."""
    return DataCorrupted(
        f"the recipe of the model is damaged: {part} is {value!r:.100}; expected {expected}",
        hint="Train the model again.",
    )


def check_record(value: object, part: str, *names: str) -> Json:
    """Return an object that has these names and no others."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise wrong(part, value, f"an object with {', '.join(names)}")
    return value


def check_text(value: object, part: str) -> str:
    """Return a text that PostgreSQL can store."""
    if not isinstance(value, str) or "\0" in value:
        raise wrong(part, value, "a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong(part, ascii(value), "a text of Unicode characters") from error
    return value


def check_column(value: object) -> str:
    """Return the name of a column."""
    name = check_text(value, "column")
    try:
        check_name(name)
    except InvalidName as error:
        raise wrong("column", value, "the name of a column") from error
    return name


def check_flag(value: object, part: str = "missing") -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise wrong(part, value, "true or false")
    return value


def check_choice(value: object, part: str, choices: Sequence[str]) -> str:
    """Return a text that is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise wrong(part, value, f"one of {', '.join(choices)}")
    return value


def check_whole(value: object, part: str, most: int) -> int:
    """Return a whole number from 1 to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise wrong(part, value, f"a whole number from 1 to {most}")
    return value


def check_whole_choice(value: object, part: str, choices: Sequence[int]) -> int:
    """Return a whole number that is one of the choices."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in choices:
        raise wrong(part, value, f"one of {', '.join(map(str, choices))}")
    return value


def is_finite(value: object) -> bool:
    """Return whether a value is a number that may be a constant."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST
