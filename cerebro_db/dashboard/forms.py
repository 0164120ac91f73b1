"""Read and check the input of a request: fields of a form, numbers and JSON that somebody has
typed.

Wrong input raises an error of cerebro_db.errors, which a page shows as a refusal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from cerebro_db.errors import InvalidParameter, InvalidText

LARGEST = 1_000_000
"""Bytes of a form."""
LARGEST_NUMBER = 2**31 - 1
"""Largest whole number in a form, as of SQL's integer."""
DEEPEST = 32
"""Levels of brackets in JSON that is typed."""


async def fields(request: Request) -> dict[str, str]:
    """Return the fields of a form by name; those that are empty have an empty text."""
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > LARGEST:
                raise InvalidParameter(f"the form is larger than {LARGEST} bytes")
    except ClientDisconnect as error:
        raise InvalidParameter("the browser left before it had sent its form") from error
    try:
        form = dict(parse_qsl(content.decode(), keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError as error:
        raise InvalidText(f"the form is not text in UTF-8: {error.reason}") from error
    for name, value in form.items():
        if "\0" in name + value:
            raise InvalidText(
                f"the field {name!r} has a zero byte", hint="Texts of PostgreSQL have none."
            )
    return form


def text(form: Mapping[str, str], name: str) -> str:
    """Return the text in a field that must not be empty."""
    if not (value := form.get(name, "").strip()):
        raise InvalidParameter(f"the field {name} is empty", hint="Fill it in.")
    return value


def whole_number(form: Mapping[str, str], name: str) -> int:
    """Return the whole number in a field."""
    value = text(form, name)
    try:
        number = int(value)
    except ValueError:
        raise InvalidParameter(
            f"{name} is {value[:80]!r}, and a whole number is expected"
        ) from None
    if abs(number) > LARGEST_NUMBER:
        raise InvalidParameter(f"{name} is {value[:80]}; expected at most {LARGEST_NUMBER}")
    return number


def read_json(value: str) -> Any:
    """Return the JSON value of a text.

    Raises:
        ValueError: it is not JSON.
        InvalidText: it is JSON that PostgreSQL does not take, for its depth or its characters.
    """
    try:
        parsed = json.loads(value)
        depth = measure_depth(parsed)
    except RecursionError:
        depth = DEEPEST + 1
    if depth > DEEPEST:
        raise InvalidText(f"the JSON {value[:40]!r}… is nested more than {DEEPEST} levels deep")
    if not _is_storable(parsed):
        raise InvalidText(
            f"the JSON {value[:40]!r} has a zero byte or half a character", hint="Leave it out."
        )
    return parsed


def measure_depth(value: object) -> int:
    """Return how many lists and objects stand in one another.

    >>> measure_depth(1), measure_depth([]), measure_depth({"a": [1, {}]})
    (0, 1, 3)
    """
    level = [value]
    depth = 0
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [
            part for item in level for part in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _is_storable(value: object) -> bool:
    try:
        written = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a character that takes two
        return False
    return b"\\u0000" not in written
