"""Frames that are none, and requests that make no sense: a trainer answers an error or ends, and
takes no memory.
"""

from __future__ import annotations

import json
import resource
import socket
import struct
from collections.abc import Sequence
from typing import Any

import hostile
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cerebro_trainer.commands.trainer import Trainer
from cerebro_trainer.wire.frames import HEADER_LIMIT, BrokenFrame, Connection, PeerGone
from cerebro_trainer.wire.prefetch import Prefetcher

PREFIX = struct.Struct("<4sIQ")
Request = tuple[dict[str, Any], bytes]


def array(shape: Sequence[int], values: np.ndarray, oid: int) -> bytes:
    """An array as PostgreSQL holds it in memory."""
    return (
        struct.pack(
            f"=iiI{len(shape)}i{len(shape)}i", len(shape), 0, oid, *shape, *([1] * len(shape))
        )
        + values.tobytes()
    )


PACKED = b"".join(array([2], np.ones(2, "f4"), 700) for _ in range(3))
CLASSES = np.array([0, 1, 0], ">i4").tobytes()
NUMBERS = np.arange(3, dtype=">i8").tobytes()
BUFFER = [
    {"role": "x", "dtype": "float32", "shape": [2, 3]},
    {"role": "y", "dtype": "int16", "shape": [2, 1]},
]
COLUMNS = [{"kind": "float32", "divide": 2.0, "array": "x"}, {"kind": "onehot", "classes": 2}]
PARTS = (NUMBERS, PACKED, CLASSES)
BLOCK = {"do": "block", "rows": 3, "lengths": [*map(len, PARTS)], "arrays": COLUMNS}
PACK = {"do": "pack", "buffer_id": 0, "seed": 1}
REQUESTS: tuple[Request, ...] = (
    ({"do": "open", "dataset": "d", "cache_bytes": 1000}, b""),
    ({"do": "buffer", "dataset": "d", "buffer_id": 0, "pass": 0, "arrays": BUFFER}, bytes(28)),
    ({"do": "close", "dataset": "d"}, b""),
    (BLOCK, b"".join(PARTS)),
    (BLOCK, b"".join(PARTS)),
    (PACK, b""),
    ({"do": "reset"}, b""),
)
KINDS = ("float32", "float64", "int32", "int64", "image", "int16", "onehot")


def frame(header: object, payload: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return PREFIX.pack(b"CDB1", len(text), len(payload)) + text + payload


def answers(data: bytes) -> list[dict[str, Any]]:
    """What a trainer without a framework answers to these bytes; then it ends as it should."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        connection = Connection(theirs)
        with pytest.raises((PeerGone, BrokenFrame)):
            Trainer(connection, Prefetcher(connection), None).serve()
        theirs.shutdown(socket.SHUT_WR)
        received, found = b"".join(iter(lambda: ours.recv(1 << 16), b"")), []
    while received:
        _, head, size = PREFIX.unpack_from(received)
        found.append(json.loads(received[PREFIX.size : PREFIX.size + head]))
        received = received[PREFIX.size + head + size :]
    return found


def test_these_requests_are_right() -> None:
    """Otherwise nothing would be tested by changing them."""
    assert [
        set(answer) for answer in answers(b"".join(frame(*request) for request in REQUESTS))
    ] == [{"ok"}, {"ok"}]


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda rest: b"CDB1" + rest))
@example(PREFIX.pack(b"CDB1", 2**32 - 1, 0))
@example(PREFIX.pack(b"CDB1", HEADER_LIMIT, 0) + b"{")
@example(PREFIX.pack(b"CDB1", 2, 2**63) + b"{}")
@example(PREFIX.pack(b"CDB1", 2, 2**64 - 1) + b"{}")
@example(PREFIX.pack(b"CDB1", 2, 2**40) + b"{}")
@example(frame({"do": "close", "dataset": "d" * 100_000}))
@example(PREFIX.pack(b"CDB1", 200_000, 0) + b"[" * 200_000)
@example(PREFIX.pack(b"CDB1", 5_007, 0) + b'{"a": ' + b"1" * 5_000 + b"}")
@example(frame({"do": "close", "dataset": "\ud800"}))
def test_bytes_that_are_no_frames(data: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10, (
        "KB taken for what never came"
    )


@given(st.sampled_from(range(len(REQUESTS))), st.data())
def test_requests_with_a_part_that_is_wrong(number: int, data: st.DataObject) -> None:
    header, payload = REQUESTS[number]
    wrong = data.draw(
        st.tuples(hostile.changed(header), st.just(payload))
        | st.tuples(st.just(header), hostile.damaged(payload))
    )
    sent = [*REQUESTS[:number], wrong, *REQUESTS[number + 1 :]]
    try:
        found = answers(b"".join(frame(*request) for request in sent))
    except BrokenFrame:
        assert not isinstance(wrong[0], dict)
    for answer in found:
        assert "ok" in answer or answer["error"]["message"]


@given(
    st.sampled_from(KINDS),
    hostile.damaged(PACKED) | hostile.damaged(CLASSES) | st.binary(max_size=200),
    st.integers(1, 4),
)
@example("float32", struct.pack("=iiI2i2i", 2, 0, 700, 2**31 - 1, 2**31 - 1, 1, 1), 1)
@example("float32", struct.pack("=iiIi", 1, -5, 700, 1), 1)
@example("float32", struct.pack("=iiIii", 1, 2**31 - 1, 700, 1, 1), 1)
@example("float32", struct.pack("=iiIii", 1, 0, 700, -4, 1), 1)
@example("int64", struct.pack("=iiIii", 1, 0, 20, 0, 1), 1)
@example("image", struct.pack(">iiIiii", 1, 0, 17, 1, 1, -2), 1)
@example("image", struct.pack(">iiIiii", 1, 0, 17, 1, 1, 2**31 - 1), 1)
def test_arrays_that_are_none(kind: str, data: bytes, rows: int) -> None:
    """Nobody but a person who calls the packer by hand sends such."""
    numbers = np.arange(rows, dtype=">i8").tobytes()
    header = {
        "do": "block",
        "rows": rows,
        "lengths": [len(numbers), len(data)],
        "arrays": [{"kind": kind, "classes": 2}],
    }
    (answer,) = answers(frame(header, numbers + data) + frame(PACK))
    assert "ok" in answer or answer["error"]["message"]
