"""Selection of an execution mode, tested with a fake program on a fake clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs import execution_modes
from cerebro_trainer.programs.execution_modes import (
    MIN_PAYOFF,
    SAMPLE_SECONDS,
    ModeRequest,
    ModeSelector,
    ModeTiming,
)
from cerebro_trainer.programs.program import FALLBACK, Program

MODES = ("plain", "step", "loop")
BATCH_SIZE = 10
NO_COMPILATION = dict.fromkeys(MODES, 0.0)


class FakeClock:
    """A clock that only `FakeProgram` advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class FakeProgram:
    """A program whose training takes a known time.

    Args:
        seconds_per_row: by mode; None for a mode that fails.
        compile_seconds: duration of the first call of each mode, in addition to its rows.
    """

    modes = MODES
    compilation_factor = 2.0
    batches_at_once: Mapping[str, int] = {}
    lanes: Mapping[str, int] = {}
    call_seconds: Mapping[str, float] = {}  # duration of a call by mode, in addition to its rows
    cached_compile_seconds: Mapping[str, float] = {}  # compile time that a cache saves, by mode
    fused_mode = Program.fused_mode

    def __init__(
        self,
        clock: FakeClock,
        seconds_per_row: Mapping[str, float | None],
        compile_seconds: Mapping[str, float] = NO_COMPILATION,
    ) -> None:
        self.clock = clock
        self.seconds_per_row = seconds_per_row
        self.compile_seconds = compile_seconds
        self.variable = 0
        self.compiled: list[str] = []
        self.saved_seconds = 0.0

    def understands(self, mode: str) -> bool:
        return mode in (*self.modes, *self.lanes, FALLBACK)

    def take_saved_compile_seconds(self) -> float:
        seconds = self.saved_seconds
        self.saved_seconds = 0.0
        return seconds

    def read(self) -> list[int]:
        return [self.variable]

    def write(self, values: list[int]) -> None:
        (self.variable,) = values

    def train(self, buffer: Any, order: np.ndarray, batch_size: int, mode: str) -> float:
        seconds = self.seconds_per_row[mode]
        if seconds is None:
            raise ValueError(f"{mode} cannot be traced")
        if mode not in self.compiled:
            self.clock.now += self.compile_seconds[mode]
            self.saved_seconds += self.cached_compile_seconds.get(mode, 0.0)
            self.compiled.append(mode)
        if len(order) < self.batches_at_once.get(mode, 1) * batch_size:
            first = self.seconds_per_row[self.modes[0]]  # trains the last batches in other modes
            seconds = first or 0.0
        self.clock.now += seconds * len(order) + self.call_seconds.get(mode, 0.0)
        self.variable += 1
        return 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(execution_modes, "time", fake)
    return fake


def make_selector(*siblings: ModeSelector) -> ModeSelector:
    return ModeSelector(mode_errors=(ValueError,), memory_errors=(MemoryError,), siblings=siblings)


def choose(
    selector: ModeSelector, program: Any, rows: int = 100, states: int = 1, **request: Any
) -> str:
    buffer: Any = SimpleNamespace(rows=rows)
    order = np.arange(rows, dtype=np.int32)
    return selector.choose(program, ModeRequest(**request), buffer, order, BATCH_SIZE, states)


def test_chooses_the_fastest_mode_and_restores_the_variables(clock: FakeClock) -> None:
    program = FakeProgram(clock, {"plain": 3e-3, "step": 2e-3, "loop": 1e-3})
    selector = make_selector()
    assert choose(selector, program, remaining_rows=10**6) == "loop"
    assert program.variable == 0
    assert set(selector.take_new_timings()) == set(MODES)
    assert selector.take_new_timings() == {}


def test_skips_the_modes_after_a_hopeless_one(clock: FakeClock) -> None:
    program = FakeProgram(clock, {"plain": 1e-4, "step": 1.0, "loop": 1.0})
    assert choose(make_selector(), program, remaining_rows=10**7) == "plain"
    assert program.compiled == ["plain", "step"]


@pytest.mark.parametrize(
    ("share", "compiled"), [(0.9, ["plain"]), (1.1, ["plain", "step", "loop"])]
)
def test_tries_other_modes_only_if_the_work_pays_for_it(
    clock: FakeClock, share: float, compiled: list[str]
) -> None:
    program = FakeProgram(clock, dict.fromkeys(MODES, 1e-3), dict.fromkeys(MODES, 0.1))
    threshold = MIN_PAYOFF * program.compilation_factor * 0.1 / 1e-3
    assert choose(make_selector(), program, remaining_rows=int(threshold * share)) == "plain"
    assert program.compiled == compiled


def test_skips_a_mode_that_fails(clock: FakeClock) -> None:
    program = FakeProgram(clock, {"plain": 1e-3, "step": None, "loop": 1e-4})
    selector = make_selector()
    assert choose(selector, program, remaining_rows=10**6) == "loop"
    assert not selector.get_timing("step").works


def test_falls_back_to_keras_if_every_mode_fails(clock: FakeClock) -> None:
    program = FakeProgram(clock, dict.fromkeys(MODES))
    selector = make_selector()
    assert FALLBACK == "keras_fit"  # the name is on the wire
    assert choose(selector, program, remaining_rows=10**6) == FALLBACK
    assert selector.first_error == "ValueError: plain cannot be traced"


def test_raises_if_the_first_mode_runs_out_of_memory(clock: FakeClock) -> None:
    """The call lacks memory; another mode would not help."""

    class HungryProgram(FakeProgram):
        def train(self, *args: Any) -> float:
            raise MemoryError

    with pytest.raises(MemoryError):
        choose(make_selector(), HungryProgram(clock, {}), remaining_rows=10**6)


def test_uses_a_forced_mode_without_timing(clock: FakeClock) -> None:
    program = FakeProgram(clock, dict.fromkeys(MODES, 1.0))
    assert choose(make_selector(), program, forced_mode="loop") == "loop"
    assert clock.now == 0


def test_rejects_an_unknown_mode(clock: FakeClock) -> None:
    program = FakeProgram(clock, dict.fromkeys(MODES, 1.0))
    with pytest.raises(RequestError, match="unknown; this trainer has plain, step, loop"):
        choose(make_selector(), program, forced_mode="other")


def test_reads_a_broken_mode_from_null() -> None:
    timing = ModeTiming(math.inf, 1.0)
    forms = {"use": None, "remaining_rows": 1, "known": {"step": timing.to_json()}}
    assert ModeRequest.from_header({"forms": forms}).cached_timings == {"step": timing}


@given(
    seconds_per_row=st.lists(st.floats(1e-6, 1e-2), min_size=3, max_size=3),
    compile_seconds=st.lists(st.floats(0.01, 5), min_size=3, max_size=3),
    remaining_rows=st.integers(1, 10**8),
)
def test_timing_adds_at_most_a_fifth_to_the_first_mode(
    seconds_per_row: list[float], compile_seconds: list[float], remaining_rows: int
) -> None:
    """Holds if no mode compiles slower than `compilation_factor` allows for."""
    limit = FakeProgram.compilation_factor * compile_seconds[0]
    costs = [min(seconds, limit) for seconds in compile_seconds]
    clock = FakeClock()
    program = FakeProgram(
        clock, dict(zip(MODES, seconds_per_row, strict=True)), dict(zip(MODES, costs, strict=True))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution_modes, "time", clock)
        mode = choose(make_selector(), program, remaining_rows=remaining_rows)
    first_mode_seconds = costs[0] + seconds_per_row[0] * remaining_rows
    sample_seconds = 3 * (2 * SAMPLE_SECONDS + 4 * BATCH_SIZE * max(seconds_per_row))
    assert clock.now <= 1.2 * first_mode_seconds + sample_seconds
    assert seconds_per_row[MODES.index(mode)] <= seconds_per_row[0]


def test_does_not_take_shared_code_of_another_batch_size_for_cheap(clock: FakeClock) -> None:
    """One trace serves all batch sizes; the second size must not expect other modes to be cheap."""
    program = FakeProgram(
        clock, {"plain": 1e-3, "step": 1e-4, "loop": 1e-4}, dict.fromkeys(MODES, 1.0)
    )
    first = make_selector()
    assert choose(first, program, remaining_rows=1000) == "plain"
    second = make_selector(first)
    assert choose(second, program, remaining_rows=1000) == "plain"
    assert program.compiled == ["plain"]
    assert second.get_timing("plain").compile_seconds == 1.0
    assert first.get_timing("plain").compile_seconds == 1.0


@pytest.mark.parametrize(("saved", "compiled"), [(0.0, ["plain", "step"]), (2.0, ["plain"])])
def test_counts_compile_seconds_that_a_cache_saved(
    clock: FakeClock, saved: float, compiled: list[str]
) -> None:
    program = FakeProgram(
        clock,
        {"plain": 1e-3, "step": 1e-2, "loop": 1e-2},
        {"plain": 0.01, "step": 5.0, "loop": 5.0},
    )
    program.cached_compile_seconds = {"plain": saved}
    selector = make_selector()
    assert choose(selector, program, remaining_rows=10_000) == "plain"
    assert program.compiled == compiled
    assert selector.get_timing("plain").compile_seconds == pytest.approx(saved + 0.01)


def test_stops_timing_a_hopeless_mode_after_one_batch(clock: FakeClock) -> None:
    program = FakeProgram(clock, {"plain": 1e-4, "step": 1e-2, "loop": 2e-4})
    assert choose(make_selector(), program, rows=1000, remaining_rows=10**7) == "plain"
    plain = 2 * SAMPLE_SECONDS + 3e-3
    loop = 2 * SAMPLE_SECONDS + 6e-3
    assert clock.now <= plain + loop + 2 * BATCH_SIZE * 1e-2


def test_does_not_take_call_overhead_for_the_time_of_rows(clock: FakeClock) -> None:
    """Handing over a large buffer takes as long for a few of its rows as for all."""
    program = FakeProgram(clock, {"plain": 1e-6, "step": 1e-7, "loop": 2e-6})
    program.call_seconds = {"step": 3e-3}
    selector = make_selector()
    assert choose(selector, program, rows=10**6, remaining_rows=10**8) == "step"
    assert selector.get_timing("step").seconds_per_row < 1.2e-7
    assert clock.now < 3 * 4 * SAMPLE_SECONDS
    assert choose(make_selector(), program, rows=1000, remaining_rows=1000) == "plain"


@pytest.mark.parametrize(("rows", "expected"), [(39, "plain"), (40, "step"), (1000, "step")])
def test_times_a_mode_only_on_enough_batches_for_one_call(
    clock: FakeClock, rows: int, expected: str
) -> None:
    """With fewer batches it would look like the first mode, which trains the last batches."""
    program = FakeProgram(clock, {"plain": 1e-3, "step": 1e-4, "loop": 1.0})
    program.batches_at_once = {"step": 4, "loop": 4}
    selector = make_selector()
    assert choose(selector, program, rows=rows, remaining_rows=10**6) == expected
    assert set(selector.take_new_timings()) == (set(MODES) if expected == "step" else {"plain"})


def test_does_not_time_modes_on_less_than_one_batch(clock: FakeClock) -> None:
    program = FakeProgram(
        clock, {"plain": 3e-3, "step": 2e-3, "loop": 1e-3}, dict.fromkeys(MODES, 0.1)
    )
    selector = make_selector()
    assert choose(selector, program, rows=BATCH_SIZE - 1, remaining_rows=10**9) == "plain"
    assert selector.take_new_timings() == {}
    assert choose(selector, program, rows=BATCH_SIZE, remaining_rows=10**9) == "loop"


@pytest.mark.parametrize(("share", "is_timed"), [(0.5, True), (0.3, False)])
def test_tries_the_next_mode_sooner_after_a_faster_one(
    clock: FakeClock, share: float, is_timed: bool
) -> None:
    """The work takes twelve compilations in the first mode, and six or 3.6 in the second."""
    program = FakeProgram(
        clock, {"plain": 1e-3, "step": share * 1e-3, "loop": 1e-6}, dict.fromkeys(MODES, 0.1)
    )
    remaining_rows = round(12 * program.compilation_factor * 0.1 / 1e-3)
    expected = "loop" if is_timed else "step"
    assert choose(make_selector(), program, remaining_rows=remaining_rows) == expected
    assert ("loop" in program.compiled) == is_timed


def test_uses_a_later_mode_if_the_first_one_fails(clock: FakeClock) -> None:
    program = FakeProgram(
        clock, {"plain": None, "step": 1e-3, "loop": None}, dict.fromkeys(MODES, 0.1)
    )
    assert choose(make_selector(), program, remaining_rows=1) == "step"


def test_reports_a_failed_mode_with_null(clock: FakeClock) -> None:
    program = FakeProgram(clock, {"plain": 1e-3, "step": None, "loop": 1e-4})
    selector = make_selector()
    assert choose(selector, program, remaining_rows=10**6) == "loop"
    assert selector.take_new_timings()["step"].to_json()["seconds_per_row"] is None


@pytest.mark.parametrize(("seconds_per_row", "is_timed"), [(0.9e-5, True), (1.1e-5, False)])
def test_tries_a_fused_mode_sooner_if_steps_are_short(
    clock: FakeClock, seconds_per_row: float, is_timed: bool
) -> None:
    """A step takes 90 or 110 microseconds, and the work six compilations."""
    modes = (*MODES, "fused")
    program = FakeProgram(clock, dict.fromkeys(modes, seconds_per_row), dict.fromkeys(modes, 0.1))
    program.lanes = {"fused": 4}
    remaining_rows = round(6 * program.compilation_factor * 0.1 / seconds_per_row)
    choose(make_selector(), program, states=4, remaining_rows=remaining_rows)
    assert ("fused" in program.compiled) == is_timed
    assert program.compiled[0] == MODES[0]
    assert MODES[1] not in program.compiled


@pytest.mark.parametrize(
    ("states", "fused_seconds", "expected"),
    [
        (4, 4e-3, "fused"),
        (4, 16e-3, "step"),
        (2, 4e-3, "fused"),
        (2, 8e-3, "step"),
        (1, 1e-6, "step"),
        (5, 4e-3, "step"),
    ],
)
def test_divides_the_time_of_a_fused_mode_by_its_states(
    clock: FakeClock, states: int, fused_seconds: float, expected: str
) -> None:
    """Four lanes that take 4 ms a row take 1 ms for each of four states, 2 ms for each of two."""
    program = FakeProgram(
        clock,
        {"plain": 4e-3, "step": 3e-3, "loop": 3.5e-3, "fused": fused_seconds},
        dict.fromkeys((*MODES, "fused"), 0.1),
    )
    program.lanes = {"fused": 4}
    selector = make_selector()
    mode = choose(selector, program, states=states, remaining_rows=10**6)
    assert mode == expected
    assert program.variable == 0
    timings = selector.take_new_timings()
    assert ("fused" in timings) == (1 < states <= 4)
    if "fused" in timings:
        assert timings["fused"].seconds_per_row == pytest.approx(fused_seconds / 4)
        assert timings["fused"].compile_seconds == pytest.approx(0.1)
