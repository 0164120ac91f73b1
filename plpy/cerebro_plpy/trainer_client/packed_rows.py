"""Raw rows on their way through a packer: blocks go there, and the arrays of a buffer come back one
by one.

A backend holds a block of rows, and an array that it passes to its table. What a buffer takes
beside that, and what images take when they are decoded, is held by the packer, whose memory is
limited.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.trainer_client import argument_checks, request_schema
from cerebro_plpy.trainer_client.connection import Link
from cerebro_plpy.trainer_client.request_schema import Header

PACKING = "cerebro_packing"  # the header of the last block of the buffer that is being packed
PACKED = "cerebro_packed"  # the arrays of a packed buffer that are still to be fetched
Globals = dict[str, Any]


class Packed(NamedTuple):
    """The arrays of a buffer that was packed: their sizes in bytes, and how many were fetched."""

    lengths: list[int]
    fetched: int = 0


def send(gd: Globals, link: Link, spec: str | None, data: list[bytes] | None) -> str | None:
    """Send a block of rows to be packed, without waiting; None at the end.

    With the first block of another buffer, or the end, the buffer before is done: its number and
    its shapes as JSON. The packer works while the database collects the rows of the next block.
    """
    header = argument_checks.record("spec", spec) if spec is not None and data is not None else None
    number = None if header is None else argument_checks.whole("buffer_id", header.get("buffer_id"))
    parts = [argument_checks.kind("an element of data", part, bytes) for part in data or ()]
    before: Header | None = gd.pop(PACKING, None)
    done = before is not None and (number is None or number != before["buffer_id"])
    if before is not None and done:
        link.post(request_schema.request("pack", before))
    if header is not None:
        link.send(
            request_schema.request("block", header, lengths=[len(part) for part in parts]), *parts
        )
        gd[PACKING] = header
    return _packed(gd, link, before) if before is not None and done else None


def sent(gd: Globals) -> int:
    """The rows of the last block; 0 after the end."""
    return argument_checks.whole("rows", gd[PACKING].get("rows")) if PACKING in gd else 0


def _packed(gd: Globals, link: Link, header: Header) -> str:
    done, size = link.reply_in_parts()
    lengths = done["lengths"]
    if sum(lengths) != size:
        raise InvalidParameter(
            f"arrays of {sum(lengths)} bytes came as {size} bytes", hint=argument_checks.HINT
        )
    gd[PACKED] = Packed(lengths)
    return json.dumps({"buffer_id": header["buffer_id"], "shapes": done["shapes"]})


def fetch(gd: Globals, link: Link, place: int) -> bytes:
    """An array of the buffer that was packed last; the first one is 1, and they are fetched in this
    order.
    """
    packed: Packed | None = gd.get(PACKED)
    if packed is None or place != packed.fetched + 1 or place > len(packed.lengths):
        raise ObjectNotReady(
            f"array {place} of a packed buffer is not the next to be fetched",
            hint=argument_checks.HINT,
        )
    gd[PACKED] = packed._replace(fetched=place)
    return link.part(packed.lengths[place - 1])
