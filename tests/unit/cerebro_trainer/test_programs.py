"""Programs are kept for those who come again, the least recently used go first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_trainer.programs import program
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.programs.program import Programs


@pytest.fixture(autouse=True)
def no_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins hold no cycles; to look for some in all that a test run has loaded takes long."""
    monkeypatch.setattr("cerebro_trainer.programs.program.gc.collect", lambda: 0)


class Maker:
    """Makes stand-ins for programs, and remembers for whom."""

    def __init__(self, nbytes: int = 0) -> None:
        self.made: list[str] = []
        self._nbytes = nbytes

    def __call__(self, spec: Any, room: MemoryBudget) -> Any:
        self.made.append(spec.key)
        forms = ("plain",) if room.mode is None else (room.mode,)
        known = (None, "keras_fit", *forms)
        return SimpleNamespace(
            layout=SimpleNamespace(nbytes=self._nbytes), understands=known.__contains__
        )


def spec(key: object) -> Any:
    return SimpleNamespace(key=str(key))


def test_equal_keys_share_a_program() -> None:
    maker = Maker()
    kept = Programs(maker)
    assert kept.get(spec("a"), MemoryBudget()) is kept.get(spec("a"), MemoryBudget())
    assert maker.made == ["a"]


def test_least_recently_used_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MAX_CACHED_PROGRAMS", 2)
    maker = Maker()
    kept = Programs(maker)
    for key in "abacab":
        kept.get(spec(key), MemoryBudget())
    assert maker.made == ["a", "b", "c", "b"]


def test_large_programs_make_room_earlier() -> None:
    maker = Maker(nbytes=program.MAX_CACHED_BYTES // 2 + 1)
    kept = Programs(maker)
    for key in "abca":
        kept.get(spec(key), MemoryBudget())
    assert maker.made == ["a", "b", "c", "a"]


def test_small_programs_all_stay() -> None:
    maker = Maker(nbytes=1)
    kept = Programs(maker)
    for key in list(range(program.MAX_CACHED_PROGRAMS)) * 2:
        kept.get(spec(key), MemoryBudget())
    assert len(maker.made) == program.MAX_CACHED_PROGRAMS


def test_a_program_without_the_form_that_is_asked_for_is_made_again() -> None:
    maker = Maker()
    kept = Programs(maker)
    plain = kept.get(spec("a"), MemoryBudget())
    sharded = kept.get(spec("a"), MemoryBudget(mode="sharded"))
    assert sharded is not plain
    assert (
        kept.get(spec("a"), MemoryBudget())
        is kept.get(spec("a"), MemoryBudget(mode="sharded"))
        is sharded
    )
