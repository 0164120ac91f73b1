"""The trainers that nobody has: which one serves whom next, and which of them go."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, eq=False)
class Trainer:
    """A process that was forked here."""

    pid: int
    exited: int
    """Readable when it has ended (a pidfd)."""
    mail: socket.socket
    """By which it hears of its next backend."""
    key: str | None
    """Who may have it after the one that it was forked for: whoever asks by the same; None for
    nobody.
    """


class Place(NamedTuple):
    """A trainer on a shelf, and until when it stays there."""

    trainer: Trainer
    until: float


class Shelf:
    """As many trainers as there is room for; the one that has been there longest makes room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._places: list[Place] = []

    def put(self, trainer: Trainer, until: float) -> None:
        """A trainer that nobody has any more."""
        self._places.append(Place(trainer, until))

    def take(self, key: str) -> Trainer | None:
        """The trainer of this key that was put here last, for whoever asks by it; None where there
        is none.
        """
        for place in reversed(self._places):
            if place.trainer.key == key:
                self._places.remove(place)
                return place.trainer
        return None

    def remove(self, trainer: Trainer) -> None:
        """It has ended."""
        self._places = [place for place in self._places if place.trainer is not trainer]

    def until(self) -> float | None:
        """When the next one has to go, if nobody takes it."""
        return min((place.until for place in self._places), default=None)

    def overdue(self, now: float) -> list[Trainer]:
        """Take those that have to go: whose time is over, and for which there is no room."""
        late = [place for place in self._places if place.until <= now]
        rest = [place for place in self._places if place.until > now]
        much = len(rest) - self._room
        gone, self._places = [*late, *rest[: max(0, much)]], rest[max(0, much) :]
        return [place.trainer for place in gone]

    def trainers(self) -> list[Trainer]:
        """All, the one that has been here longest first."""
        return [place.trainer for place in self._places]
