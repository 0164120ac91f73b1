"""The cache of programs drops the least recently used ones first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_trainer.programs import program
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.programs.program import Programs


@pytest.fixture(autouse=True)
def no_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the garbage collection, which takes long in a test process."""
    monkeypatch.setattr("cerebro_trainer.programs.program.gc.collect", lambda: 0)


class Maker:
    """Makes fake programs and records their keys."""

    def __init__(self, nbytes: int = 0) -> None:
        self.keys: list[str] = []
        self._nbytes = nbytes

    def __call__(self, spec: Any, budget: MemoryBudget) -> Any:
        self.keys.append(spec.key)
        modes = ("plain",) if budget.mode is None else (budget.mode,)
        understood = (None, "keras_fit", *modes)
        return SimpleNamespace(
            layout=SimpleNamespace(nbytes=self._nbytes), understands=understood.__contains__
        )


def spec(key: object) -> Any:
    return SimpleNamespace(key=str(key))


def test_equal_keys_share_a_program() -> None:
    maker = Maker()
    programs = Programs(maker)
    assert programs.get(spec("a"), MemoryBudget()) is programs.get(spec("a"), MemoryBudget())
    assert maker.keys == ["a"]


def test_drops_the_least_recently_used_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MAX_CACHED_PROGRAMS", 2)
    maker = Maker()
    programs = Programs(maker)
    for key in "abacab":
        programs.get(spec(key), MemoryBudget())
    assert maker.keys == ["a", "b", "c", "b"]


def test_drops_large_programs_earlier() -> None:
    maker = Maker(nbytes=program.MAX_CACHED_BYTES // 2 + 1)
    programs = Programs(maker)
    for key in "abca":
        programs.get(spec(key), MemoryBudget())
    assert maker.keys == ["a", "b", "c", "a"]


def test_keeps_all_small_programs() -> None:
    maker = Maker(nbytes=1)
    programs = Programs(maker)
    for key in list(range(program.MAX_CACHED_PROGRAMS)) * 2:
        programs.get(spec(key), MemoryBudget())
    assert len(maker.keys) == program.MAX_CACHED_PROGRAMS


def test_makes_a_program_again_for_a_mode_that_it_lacks() -> None:
    maker = Maker()
    programs = Programs(maker)
    plain = programs.get(spec("a"), MemoryBudget())
    sharded = programs.get(spec("a"), MemoryBudget(mode="sharded"))
    assert sharded is not plain
    assert (
        programs.get(spec("a"), MemoryBudget())
        is programs.get(spec("a"), MemoryBudget(mode="sharded"))
        is sharded
    )
