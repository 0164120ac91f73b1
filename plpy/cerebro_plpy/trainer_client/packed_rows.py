"""Packing of raw rows in a packer: blocks are sent, and the arrays of a buffer are fetched singly.

A backend has one block of rows, or one array, in memory. The rest of a buffer and decoded images
are in the packer, whose memory is limited.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Globals
from cerebro_plpy.errors import InvalidParameter, ObjectNotReady
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.trainer_client import argument_checks, request_schema
from cerebro_plpy.trainer_client.connection import TrainerConnection
from cerebro_plpy.trainer_client.request_schema import Header

PACKING = "cerebro_packing"  # the header of the last block of the current buffer
PACKED = "cerebro_packed"  # the arrays of a packed buffer that are still to be fetched


class PackedArrays(NamedTuple):
    """The arrays of a packed buffer."""

    lengths: list[int]  # bytes
    fetched_count: int = 0


def send_block(
    gd: Globals, link: TrainerConnection, spec: str | None, data: list[bytes] | None
) -> str | None:
    """Send a block of rows to be packed, without waiting; None ends the rows.

    The packer works while the database collects the rows of the next block.

    Returns:
        If this was the first block of a new buffer, or the end: number and shapes of the buffer
        before, as JSON.
    """
    header = None
    buffer_id = None
    if spec is not None and data is not None:
        header = argument_checks.parse_object("spec", spec)
        buffer_id = argument_checks.check_integer("buffer_id", header.get("buffer_id"))
    parts = [argument_checks.check_type("an element of data", part, bytes) for part in data or ()]
    previous: Header | None = gd.pop(PACKING, None)
    completed: Header | None = None
    if previous is not None and buffer_id != previous["buffer_id"]:
        completed = previous
        link.post(request_schema.build_request("pack", completed))
    if header is not None:
        lengths = [len(part) for part in parts]
        link.send(request_schema.build_request("block", header, lengths=lengths), *parts)
        gd[PACKING] = header
    if completed is None:
        return None
    return _receive_shapes(gd, link, completed)


def count_block_rows(gd: Globals) -> int:
    """Return the rows of the last block; 0 after the end."""
    if PACKING not in gd:
        return 0
    return argument_checks.check_integer("rows", gd[PACKING].get("rows"))


def _receive_shapes(gd: Globals, link: TrainerConnection, header: Header) -> str:
    result, size = link.begin_reply()
    lengths = result["lengths"]
    if sum(lengths) != size:
        raise InvalidParameter(
            f"arrays of {count_nouns(sum(lengths), 'byte')} came as {count_nouns(size, 'byte')}",
            hint=argument_checks.HINT,
        )
    gd[PACKED] = PackedArrays(lengths)
    return json.dumps({"buffer_id": header["buffer_id"], "shapes": result["shapes"]})


def fetch_array(gd: Globals, link: TrainerConnection, number: int) -> bytes:
    """Return an array of the last packed buffer.

    Arrays must be fetched in order.

    Args:
        number: number of the array, from 1.
    """
    arrays: PackedArrays | None = gd.get(PACKED)
    if arrays is None or number != arrays.fetched_count + 1 or number > len(arrays.lengths):
        raise ObjectNotReady(
            f"array {number} of a packed buffer is not the next to be fetched",
            hint=argument_checks.HINT,
        )
    gd[PACKED] = arrays._replace(fetched_count=number)
    return link.read_part(arrays.lengths[number - 1])
