"""The states that a trainer can be asked for: that of its program's variables, and one that another
job has replaced.

A worker stores what a visit has left while the next one is trained: the values that were replaced
stay as they were, as long as somebody refers to them, and another thread may send them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_trainer.errors import RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.program import Array, Program
from cerebro_trainer.state import serialization
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.serialization import Progress
from cerebro_trainer.wire.fields import integer, text
from cerebro_trainer.wire.frames import Message, Messages
from cerebro_trainer.wire.streams import Reader


class Held(NamedTuple):
    """The state that a program's variables now are, under the name the backend gave it."""

    key: str
    program: Program


class Loading(NamedTuple):
    """A state on its way into a program, and what is to be set once it is there."""

    reading: Reader
    spec: ProgramSpec


class Snapshot(NamedTuple):
    """A state as it was at a moment, whatever its program does after that."""

    key: str
    values: Sequence[Array]
    layout: Layout
    header: bytes

    @classmethod
    def of(cls, held: Held, epochs: int, base: str | None) -> Snapshot:
        """The state of a program that was trained for so many epochs; `base` is the digest of its
        frozen weights.
        """
        program = held.program
        header = serialization.build_header(program.layout, Progress(program.step, epochs), base)
        return cls(held.key, program.read(), program.layout, header)

    def chunks(self, header: Mapping[str, Any]) -> Messages:
        """What a request wants of it, in chunks of as many bytes as that says, and how many these
        were.
        """
        part = text(header, "part", choices=serialization.PARTS) if "part" in header else "whole"
        total, count = 0, 0
        size = integer(header, "chunk_bytes", minimum=1)
        for chunk in serialization.dump(self.values, self.layout, self.header, size, part):
            total, count = total + sum(map(len, chunk)), count + 1
            yield Message({"more": True}, *chunk)
        yield Message({"ok": {"bytes": total, "chunks": count}})


def not_held(key: str, held: Held | None) -> RequestError:
    """The error where somebody asks for a state that is not there."""
    named = "no state" if held is None else f"state {held.key!r}"
    return RequestError(
        f"state {key!r} is not held, but {named}", sqlstate="55000", hint="Send the state's chunks."
    )
