"""The states that a trainer can be asked for: that of its program's variables, and one that another job has replaced.

A worker stores what a visit has left while the next one is trained: the values that were replaced stay as they were, as
long as somebody refers to them, and another thread may send them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.protocol import Array, Program
from cerebro_trainer.state import serialization
from cerebro_trainer.state.serialization import Layout, Progress
from cerebro_trainer.wire.frames import Message, Messages


class Held(NamedTuple):
    """The state that a program's variables now are, under the name the backend gave it."""

    key: str
    program: Program


class Snapshot(NamedTuple):
    """A state as it was at a moment, whatever its program does after that."""

    key: str
    values: Sequence[Array]
    layout: Layout
    progress: Progress

    @classmethod
    def of(cls, held: Held, epochs: int) -> Snapshot:
        """The state of a program that was trained for so many epochs."""
        program = held.program
        return cls(held.key, program.read(), program.layout, Progress(program.step, epochs))

    def chunks(self, chunk_bytes: int) -> Messages:
        """All of it, in chunks of that many bytes, and how many these were."""
        total, count = 0, 0
        for chunk in serialization.dump(self.values, self.layout, self.progress, chunk_bytes):
            total, count = total + sum(map(len, chunk)), count + 1
            yield Message({"more": True}, *chunk)
        yield Message({"ok": {"bytes": total, "chunks": count}})


def not_held(key: str, held: Held | None) -> RequestError:
    """The error where somebody asks for a state that is not there."""
    named = "no state" if held is None else f"state {held.key!r}"
    return RequestError(f"state {key!r} is not held, but {named}", sqlstate="55000", hint="Send the state's chunks.")
