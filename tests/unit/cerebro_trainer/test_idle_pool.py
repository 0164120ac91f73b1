"""Trainers that nobody has: by key, for a time, as many as there is room for, and as there is
memory for.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cerebro_trainer.fork_server import memory
from cerebro_trainer.fork_server.idle_pool import Shelf, Trainer


@pytest.fixture
def mail() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


def trainer(mail: socket.socket, key: str, pid: int = 1) -> Trainer:
    return Trainer(pid, -1, mail, key)


def test_the_one_that_came_last_is_taken_by_its_key_and_once(mail: socket.socket) -> None:
    shelf = Shelf(3)
    first, second, other = (trainer(mail, key) for key in ("a", "a", "b"))
    for each in (first, second, other):
        shelf.put(each, 10.0)
    assert shelf.take("c") is None
    assert [shelf.take("a") for _ in range(3)] == [second, first, None]
    assert shelf.trainers() == [other]


def test_who_was_there_long_enough_goes_and_who_came_first_makes_room(mail: socket.socket) -> None:
    shelf = Shelf(2)
    late, *others = (trainer(mail, "a", pid) for pid in range(4))
    shelf.put(late, 1.0)
    for each in others:
        shelf.put(each, 10.0)
    assert shelf.until() == 1.0
    assert shelf.overdue(2.0) == [late, others[0]]
    assert shelf.trainers() == others[1:]
    assert shelf.overdue(2.0) == []
    assert shelf.overdue(10.0) == others[1:]
    assert shelf.until() is None


def test_who_has_ended_is_not_there(mail: socket.socket) -> None:
    shelf = Shelf(2)
    both = trainer(mail, "a"), trainer(mail, "a")
    for each in both:
        shelf.put(each, 1.0)
    shelf.remove(both[1])
    shelf.remove(both[1])
    assert shelf.take("a") is both[0]


@pytest.mark.parametrize(
    ("free", "kept", "short"),
    [(200, 50, False), (99, 50, True), (200, 140, False), (200, 141, True), (200, 0, False)],
)
def test_they_hold_an_eighth_while_as_much_is_free(
    monkeypatch: pytest.MonkeyPatch, free: int, kept: int, short: bool
) -> None:
    """Each beside what it shares with the process that it was forked from."""
    monkeypatch.setattr(memory, "memory", lambda: (800, free))
    monkeypatch.setattr(memory, "held", lambda pid: kept if pid in (1, 2) else 90)
    assert memory.short([1, 2]) is short


@pytest.mark.parametrize(("limit", "roomy"), [(0, True), (490, True), (489, False)])
def test_who_has_taken_much_of_its_limit_is_given_to_nobody(
    monkeypatch: pytest.MonkeyPatch, limit: int, roomy: bool
) -> None:
    monkeypatch.setattr(memory, "held", lambda pid: 190 if pid == 1 else 90)
    assert memory.roomy(1, limit) is roomy


def test_memory_is_that_of_the_machine_or_less() -> None:
    total, free = memory.memory()
    assert 0 < free < total
    assert 0 < memory.held(1) < total
    assert memory.held(1 << 30) == 0
