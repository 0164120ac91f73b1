"""Read and check the fields of a form, numbers and JSON that a user has typed.

Wrong input raises an error of cerebro_db.errors, which the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from cerebro_db.errors import InvalidParameter, InvalidText

Form: TypeAlias = Mapping[str, str]
"""Fields of a form, by name."""
MAX_BYTES = 1_000_000
"""Largest size of a form."""
MAX_INTEGER = 2**31 - 1
"""Largest whole number in a form, that of SQL's type integer."""
MAX_DEPTH = 32
"""Largest number of nested brackets in typed JSON."""


async def read_form(request: Request) -> dict[str, str]:
    """Return the texts of a form's fields, by name."""
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > MAX_BYTES:
                raise InvalidParameter(f"the form is larger than {MAX_BYTES} bytes")
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


def read_text(form: Form, name: str) -> str:
    """Return the text in a field that must not be empty."""
    value = form.get(name, "").strip()
    if not value:
        raise InvalidParameter(f"the field {name} is empty", hint="Fill it in.")
    return value


def read_integer(form: Form, name: str) -> int:
    """Return the whole number in a field."""
    value = read_text(form, name)
    try:
        number = int(value)
    except ValueError:
        raise InvalidParameter(
            f"{name} is {value[:80]!r}, and a whole number is expected"
        ) from None
    if abs(number) > MAX_INTEGER:
        raise InvalidParameter(f"{name} is {value[:80]}; expected at most {MAX_INTEGER}")
    return number


def read_json(value: str) -> Any:
    """Return the JSON value of a text.

    Raises:
        ValueError: it is not JSON.
        InvalidText: PostgreSQL does not accept the depth or the characters of the JSON.
    """
    try:
        parsed = json.loads(value)
        depth = measure_depth(parsed)
    except RecursionError:
        depth = MAX_DEPTH + 1
    if depth > MAX_DEPTH:
        raise InvalidText(f"the JSON {value[:40]!r}… is nested more than {MAX_DEPTH} levels deep")
    if not _is_storable(parsed):
        raise InvalidText(
            f"the JSON {value[:40]!r} has a zero byte or half a character", hint="Leave it out."
        )
    return parsed


def measure_depth(value: object) -> int:
    """Return the number of nested lists and objects.

    >>> measure_depth(1), measure_depth([]), measure_depth({"a": [1, {}]})
    (0, 1, 3)
    """
    level = [value]
    depth = 0
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        lists = [item.values() if isinstance(item, dict) else item for item in level]
        level = [child for children in lists for child in children]
    return depth


def _is_storable(value: object) -> bool:
    try:
        encoded = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return b"\\u0000" not in encoded
