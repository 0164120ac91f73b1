"""The trainers that no backend uses, which wait for a backend with the same key."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, eq=False)
class ForkedTrainer:
    """A trainer process of this fork server."""

    pid: int
    pidfd: int  # readable when the process has ended
    mailbox: socket.socket  # through which it receives its next lease
    key: str | None  # backends with this key may reuse it; None for no reuse


class IdleTrainer(NamedTuple):
    """An entry of the idle pool."""

    trainer: ForkedTrainer
    expires_at: float


class IdlePool:
    """Trainers in the order in which they became idle; the oldest ones make room for new ones."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: list[IdleTrainer] = []

    def add(self, trainer: ForkedTrainer, expires_at: float) -> None:
        """Add a trainer whose backend has gone."""
        self._entries.append(IdleTrainer(trainer, expires_at))

    def take(self, key: str) -> ForkedTrainer | None:
        """Remove and return the newest trainer of a key, if there is one."""
        for entry in reversed(self._entries):
            if entry.trainer.key == key:
                self._entries.remove(entry)
                return entry.trainer
        return None

    def remove(self, trainer: ForkedTrainer) -> None:
        """Remove a trainer if it is in the pool."""
        self._entries = [entry for entry in self._entries if entry.trainer is not trainer]

    def next_expiry(self) -> float | None:
        """Return the earliest expiry time; None for an empty pool."""
        return min((entry.expires_at for entry in self._entries), default=None)

    def take_expired(self, now: float) -> list[ForkedTrainer]:
        """Remove and return expired trainers, and the oldest ones beyond the capacity."""
        expired = [entry for entry in self._entries if entry.expires_at <= now]
        remaining = [entry for entry in self._entries if entry.expires_at > now]
        excess = max(0, len(remaining) - self._capacity)
        self._entries = remaining[excess:]
        return [entry.trainer for entry in (*expired, *remaining[:excess])]

    def trainers(self) -> list[ForkedTrainer]:
        """Return all trainers, the oldest one first."""
        return [entry.trainer for entry in self._entries]
