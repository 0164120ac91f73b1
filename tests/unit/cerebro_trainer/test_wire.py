"""Frames go through a socket unchanged, in whatever pieces they arrive."""

from __future__ import annotations

import json
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.wire.frames import BrokenFrame, Connection, Message, PeerGone

headers = st.dictionaries(
    st.text(), st.none() | st.integers() | st.text() | st.lists(st.booleans())
)


def frame(header: object, payload: bytes = b"", magic: bytes = b"CDB1") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<4sIQ", magic, len(text), len(payload)) + text + payload


@given(headers, st.lists(st.binary(max_size=50), max_size=3))
def test_what_is_sent_is_received(header: dict[str, object], parts: list[bytes]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Connection(ours).send(Message(header, *(memoryview(part) for part in parts)))
        received = Connection(theirs).receive()
    assert received.header == header
    assert received.payload.tobytes() == b"".join(parts)


def test_frames_arrive_in_pieces() -> None:
    ours, theirs = socket.socketpair()
    data = frame({"a": 1}, b"x" * 100_000)

    def drip() -> None:
        for start in range(0, len(data), 777):
            theirs.sendall(data[start : start + 777])

    with ours, theirs:
        sender = threading.Thread(target=drip)
        sender.start()
        received = Connection(ours).receive()
        sender.join()
    assert received.payload.tobytes() == b"x" * 100_000


@given(st.integers(0, 40))
def test_end_of_file_anywhere_means_the_peer_is_gone(length: int) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(frame({"do": "x"}, b"payload of some length")[:length])
        connection = Connection(ours)
        with pytest.raises(PeerGone):
            connection.check_peer()
        with pytest.raises(PeerGone):
            connection.receive()


def test_a_peer_that_is_there_is_not_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours)
        connection.check_peer()
        theirs.sendall(frame({}))
        connection.check_peer()
        assert connection.receive().header == {}


def test_sending_to_nobody_means_the_peer_is_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        with pytest.raises(PeerGone):
            Connection(ours).send(Message({}))


@pytest.mark.parametrize(
    "data",
    [
        frame({}, magic=b"HTTP"),
        frame([1, 2]),
        struct.pack("<4sIQ", b"CDB1", 3, 0) + b"{x}",
        struct.pack("<4sIQ", b"CDB1", 1 << 31, 0),
        struct.pack("<4sIQ", b"CDB1", 2, 0) + b"\xff\xfe",
    ],
)
def test_what_is_no_frame_is_said_to_be_none(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        with pytest.raises(BrokenFrame):
            Connection(ours).receive()
