"""The order in which the effects of a step are applied."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.errors import ServerGone
from cerebro_plpy.run.loop.epoch_loop import EpochLoop
from cerebro_plpy.run.loop.step import Step


class Log:
    """A log that notes when it is written, and may refuse."""

    def __init__(self, effects: list[str], *, refuses: bool = False) -> None:
        self._effects = effects
        self._refuses = refuses

    def write(self, statements: Sequence[Statement]) -> None:
        if self._refuses:
            raise ServerGone("the connection is lost")
        self._effects += [statement.sql for statement in statements]


def loop_with(log: Log) -> EpochLoop:
    loop = object.__new__(EpochLoop)
    run: Any = SimpleNamespace(log=log)
    loop._run = run
    return loop


def test_effects_are_applied_in_one_order() -> None:
    effects: list[str] = []
    step = Step(
        notes=[partial(effects.append, "note")],
        tasks=[partial(effects.append, "task")],
        changes=[partial(effects.append, "first change"), partial(effects.append, "change")],
        log=[Statement("statement")],
    )
    loop_with(Log(effects)).execute(step)
    assert effects == ["statement", "first change", "change", "task", "note"]


def test_nothing_changes_if_the_log_cannot_be_written() -> None:
    effects: list[str] = []
    note = partial(effects.append, "effect")
    step = Step(log=[Statement("statement")], changes=[note], tasks=[note], notes=[note])
    with pytest.raises(ServerGone):
        loop_with(Log(effects, refuses=True)).execute(step)
    assert effects == []
