"""What a form of a page says, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from cerebro_db.errors import InvalidParameter

LARGEST = 1_000_000
"""Bytes of a form."""


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent, by their names; those that are empty have an empty text."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST:
            raise InvalidParameter(f"the form is larger than {LARGEST} bytes")
    return dict(parse_qsl(content.decode(), keep_blank_values=True))


def text(form: Mapping[str, str], name: str) -> str:
    """What a field says that must say something."""
    if not (value := form.get(name, "").strip()):
        raise InvalidParameter(f"the field {name} is empty", hint="Fill it in.")
    return value


def whole_number(form: Mapping[str, str], name: str) -> int:
    """The whole number in a field."""
    value = text(form, name)
    try:
        return int(value)
    except ValueError:
        raise InvalidParameter(f"{name} is {value!r}, and a whole number is expected") from None
