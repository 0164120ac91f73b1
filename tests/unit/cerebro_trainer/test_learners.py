"""The cache of learners drops the least recently used ones first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cerebro_trainer.programs import learner
from cerebro_trainer.programs.learner import Learners
from cerebro_trainer.programs.memory import MemoryBudget


@pytest.fixture(autouse=True)
def no_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the garbage collection, which takes long in a test process."""
    monkeypatch.setattr("cerebro_trainer.programs.learner.gc.collect", lambda: 0)


class Maker:
    """Makes fake learners and records their keys."""

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


def test_equal_keys_share_a_learner() -> None:
    maker = Maker()
    learners = Learners(maker)
    assert learners.get(spec("a"), MemoryBudget()) is learners.get(spec("a"), MemoryBudget())
    assert maker.keys == ["a"]


def test_copies_have_variables_of_their_own() -> None:
    maker = Maker()
    learners = Learners(maker)
    copies = [learners.get(spec("a"), MemoryBudget(), copy) for copy in (0, 1, 0, 1)]
    assert copies[0] is copies[2] is not copies[1] is copies[3]
    assert maker.keys == ["a", "a"]


def test_drops_the_least_recently_used_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "MAX_CACHED_LEARNERS", 2)
    maker = Maker()
    learners = Learners(maker)
    for key in "abacab":
        learners.get(spec(key), MemoryBudget())
    assert maker.keys == ["a", "b", "c", "b"]


def test_drops_large_learners_earlier() -> None:
    maker = Maker(nbytes=learner.MAX_CACHED_BYTES // 2 + 1)
    learners = Learners(maker)
    for key in "abca":
        learners.get(spec(key), MemoryBudget())
    assert maker.keys == ["a", "b", "c", "a"]


def test_keeps_all_small_learners() -> None:
    maker = Maker(nbytes=1)
    learners = Learners(maker)
    for key in list(range(learner.MAX_CACHED_LEARNERS)) * 2:
        learners.get(spec(key), MemoryBudget())
    assert len(maker.keys) == learner.MAX_CACHED_LEARNERS


def test_makes_a_learner_again_for_a_mode_that_it_lacks() -> None:
    maker = Maker()
    learners = Learners(maker)
    plain = learners.get(spec("a"), MemoryBudget())
    sharded = learners.get(spec("a"), MemoryBudget(mode="sharded"))
    assert sharded is not plain
    assert (
        learners.get(spec("a"), MemoryBudget())
        is learners.get(spec("a"), MemoryBudget(mode="sharded"))
        is sharded
    )
