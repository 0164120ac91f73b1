"""One request is received ahead of the one that is worked on, and no more than one."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.errors import OutOfMemory
from cerebro_trainer.wire.frames import BrokenFrame, Connection, Message, PeerGone
from cerebro_trainer.wire.prefetch import Prefetcher

LARGE = memoryview(bytes(1 << 22))  # more than a socket holds


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def taken(sock: socket.socket, size: int) -> int:
    """How many of `size` bytes the other end takes before it stops to take any."""
    left = size
    while left and select.select([], [sock], [], 0.2)[1]:
        left -= sock.send(LARGE[:left])
    return size - left


@given(st.lists(st.dictionaries(st.text(), st.integers())))
def test_frames_keep_their_order(headers: list[dict[str, int]]) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        prefetcher = Prefetcher(Connection(ours))
        with theirs:
            for header in headers:
                Connection(theirs).send(Message(header))
            assert [prefetcher.receive().header for _ in headers] == headers
        with pytest.raises(PeerGone):
            prefetcher.receive()


def test_a_frame_is_received_before_it_is_asked_for(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    prefetcher = Prefetcher(Connection(ours))
    Connection(theirs).send(Message({"number": 1}, LARGE))  # returns only when all was received
    assert prefetcher.receive().header == {"number": 1}


def test_no_more_than_one_frame_is_received_ahead(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    prefetcher = Prefetcher(Connection(ours))
    Connection(theirs).send(Message({"number": 1}, LARGE))
    theirs.setblocking(False)
    assert taken(theirs, len(LARGE)) < len(LARGE)
    assert prefetcher.receive().header == {"number": 1}


def test_an_error_comes_in_its_turn_and_the_frames_behind_it_follow(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    connection = Connection(ours)
    receive, calls = connection.receive, iter(range(9))

    def failing() -> object:
        frame = receive()
        if next(calls) == 1:
            raise OutOfMemory("no room")
        return frame

    monkeypatch.setattr(connection, "receive", failing)
    prefetcher = Prefetcher(connection)
    for number in range(3):
        Connection(theirs).send(Message({"number": number}))
    assert prefetcher.receive().header == {"number": 0}
    with pytest.raises(OutOfMemory):
        prefetcher.receive()
    assert prefetcher.receive().header == {"number": 2}


def test_nothing_for_the_longest_wait_means_the_peer_is_gone(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    with pytest.raises(PeerGone, match="idle"):
        Prefetcher(Connection(pair[0])).receive(0.01)


def test_what_is_no_frame_is_said_when_it_is_asked_for(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    theirs.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(BrokenFrame):
        Prefetcher(Connection(ours)).receive()
