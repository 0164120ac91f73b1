"""JSON arguments, with maxima of characters and of elements, because both cost the backend time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cerebro_plpy import limits
from cerebro_plpy.errors import InvalidText

JsonObject = Mapping[str, Any]


def read_json(name: str, text: str) -> Any:
    """Return the value of a JSON argument.

    Raises:
        InvalidParameter: the text is too long.
        InvalidText: the text is nested too deeply.
    """
    limits.check(f"the number of characters of {name}", len(text), limits.JSON_CHARACTERS)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InvalidText(
            f"{name} is nested too deeply to be read", hint="Expected a few levels."
        ) from error


def read_lists(name: str, text: str) -> Any:
    """Return the value of a JSON argument with lists of values to sample; see `read_json`."""
    value = read_json(name, text)
    for key, length in _lengths(name, value):
        limits.check(f"the number of values of {key}", length, limits.LISTED_VALUES)
    return value


def _lengths(name: str, value: Any) -> Iterator[tuple[str, int]]:
    """Yield the key and the length of each list within a value, at any depth."""
    unread = [(name, value)]
    while unread:
        key, item = unread.pop()
        if isinstance(item, dict):
            unread += item.items()
        elif isinstance(item, list):
            yield key, len(item)
            unread += ((key, nested) for nested in item if isinstance(nested, (dict, list)))
