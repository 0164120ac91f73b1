"""Idle trainers have a key, an expiry time, and limits of their number and memory."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cerebro_trainer.fork_server import memory
from cerebro_trainer.fork_server.idle_pool import ForkedTrainer, IdlePool


@pytest.fixture
def mailbox() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


def trainer(mailbox: socket.socket, key: str, pid: int = 1) -> ForkedTrainer:
    return ForkedTrainer(pid, -1, mailbox, key)


def test_the_newest_trainer_of_a_key_is_taken_first_and_only_once(mailbox: socket.socket) -> None:
    pool = IdlePool(3)
    first, second, other = (trainer(mailbox, key) for key in ("a", "a", "b"))
    for each in (first, second, other):
        pool.add(each, 10.0)
    assert pool.take("c") is None
    assert [pool.take("a") for _ in range(3)] == [second, first, None]
    assert pool.trainers() == [other]


def test_expired_trainers_and_the_oldest_excess_ones_are_removed(
    mailbox: socket.socket,
) -> None:
    pool = IdlePool(2)
    late, *others = (trainer(mailbox, "a", pid) for pid in range(4))
    pool.add(late, 1.0)
    for each in others:
        pool.add(each, 10.0)
    assert pool.next_expiry() == 1.0
    assert pool.take_expired(2.0) == [late, others[0]]
    assert pool.trainers() == others[1:]
    assert pool.take_expired(2.0) == []
    assert pool.take_expired(10.0) == others[1:]
    assert pool.next_expiry() is None


def test_a_removed_trainer_cannot_be_taken(mailbox: socket.socket) -> None:
    pool = IdlePool(2)
    both = trainer(mailbox, "a"), trainer(mailbox, "a")
    for each in both:
        pool.add(each, 1.0)
    pool.remove(both[1])
    pool.remove(both[1])
    assert pool.take("a") is both[0]


@pytest.mark.parametrize(
    ("free", "kept", "short"),
    [(200, 50, False), (99, 50, True), (200, 140, False), (200, 141, True), (200, 0, False)],
)
def test_idle_trainers_may_use_an_eighth_while_as_much_is_free(
    monkeypatch: pytest.MonkeyPatch, free: int, kept: int, short: bool
) -> None:
    """Memory that is shared with the fork server does not count."""
    monkeypatch.setattr(memory, "read_memory", lambda: (800, free))
    monkeypatch.setattr(memory, "read_used_bytes", lambda pid: kept if pid in (1, 2) else 90)
    assert memory.exceed_share([1, 2]) is short


@pytest.mark.parametrize(("limit", "roomy"), [(0, True), (490, True), (489, False)])
def test_a_trainer_near_its_memory_limit_is_not_reused(
    monkeypatch: pytest.MonkeyPatch, limit: int, roomy: bool
) -> None:
    monkeypatch.setattr(memory, "read_used_bytes", lambda pid: 190 if pid == 1 else 90)
    assert memory.has_headroom(1, limit) is roomy


def test_the_measured_memory_is_that_of_the_machine_or_less() -> None:
    total, free = memory.read_memory()
    assert 0 < free < total
    assert 0 < memory.read_used_bytes(1) < total
    assert memory.read_used_bytes(1 << 30) == 0
