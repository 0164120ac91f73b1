"""The choice of a form, over programs that only pretend to train: on a clock of their own."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs import execution_modes
from cerebro_trainer.programs.execution_modes import ModeRequest, ModeSelector, ModeTiming
from cerebro_trainer.programs.program import Program

NAMES = ("plain", "step", "loop")
BATCH = 10


class Clock:
    """Time passes only where a program says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Pretender:
    """Takes `compiling` seconds at the first call of a form and `per_row` for each row; None means
    it fails.
    """

    modes = NAMES
    compilation_factor = 2.0
    batches_at_once: Mapping[str, int] = {}
    lanes: Mapping[str, int] = {}
    before: Mapping[str, float] = {}
    """Seconds that it took to compile forms that are found compiled."""
    per_call: Mapping[str, float] = {}
    """Seconds that a call of a form takes beside its rows."""

    def __init__(
        self, clock: Clock, per_row: Mapping[str, float | None], compiling: Mapping[str, float]
    ) -> None:
        self.clock, self.per_row, self.compiling = clock, per_row, compiling
        self.value = 0
        self.used: list[str] = []
        self.found = 0.0

    def take_saved_compile_seconds(self) -> float:
        seconds, self.found = self.found, 0.0
        return seconds

    fused_mode = Program.fused_mode

    def understands(self, form: str) -> bool:
        return form in (*self.modes, *self.lanes, "keras_fit")

    def read(self) -> list[Any]:
        return [self.value]

    def write(self, values: list[Any]) -> None:
        (self.value,) = values

    def train(self, buffer: Any, order: np.ndarray, batch_size: int, form: str) -> float:
        seconds = self.per_row[form]
        if seconds is None:
            raise ValueError(f"{form} cannot be traced")
        if form not in self.used:
            self.clock.now += self.compiling[form]
            self.found += self.before.get(form, 0.0)
            self.used.append(form)
        if len(order) < self.batches_at_once.get(form, 1) * batch_size:
            seconds = self.per_row[self.modes[0]]  # as a program does with what is left over
        self.clock.now += (seconds or 0.0) * len(order) + self.per_call.get(form, 0.0)
        self.value += 1
        return 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(execution_modes, "time", made)
    return made


def choose(selector: ModeSelector, program: Pretender, rows: int = 100, **wanted: Any) -> str:
    found: Any = program
    order = np.arange(rows, dtype=np.int32)
    return selector.choose(found, ModeRequest(**wanted), SimpleNamespace(rows=rows), order, BATCH)  # type: ignore[arg-type]


def new() -> ModeSelector:
    return ModeSelector((ValueError,), (MemoryError,))


def test_the_fastest_form_is_kept_and_the_state_is_as_it_was(clock: Clock) -> None:
    program = Pretender(
        clock, {"plain": 3e-3, "step": 2e-3, "loop": 1e-3}, dict.fromkeys(NAMES, 0.1)
    )
    selector = new()
    assert choose(selector, program, remaining_rows=10**6) == "loop"
    assert program.value == 0
    assert set(selector.take_new_timings()) == set(NAMES)
    assert selector.take_new_timings() == {}


def test_what_another_batch_size_compiled_is_not_taken_for_cheap(clock: Clock) -> None:
    """One trace serves all batch sizes: the second finds it, and must not think that other forms
    cost as little.
    """
    program = Pretender(
        clock, {"plain": 1e-3, "step": 1e-4, "loop": 1e-4}, dict.fromkeys(NAMES, 1.0)
    )
    first = new()
    assert choose(first, program, remaining_rows=1000) == "plain"
    second = ModeSelector((ValueError,), (MemoryError,), [first])
    assert choose(second, program, remaining_rows=1000) == "plain"
    assert program.used == ["plain"]
    assert (
        second.get_timing("plain").compile_seconds
        == first.get_timing("plain").compile_seconds
        == 1.0
    )


@given(
    per_row=st.lists(st.floats(1e-6, 1e-2), min_size=3, max_size=3),
    compiling=st.lists(st.floats(0.01, 5), min_size=3, max_size=3),
    remaining=st.integers(1, 10**8),
)
def test_a_trial_costs_little_against_the_work_ahead(
    per_row: list[float], compiling: list[float], remaining: int
) -> None:
    """As long as other forms compile no slower than expected, trying them costs at most a fifth of
    what the first form alone would take, beside a fixed number of samples."""
    clock = Clock()
    factor = Pretender.compilation_factor
    costs = {
        name: min(cost, factor * compiling[0]) for name, cost in zip(NAMES, compiling, strict=True)
    }
    program = Pretender(clock, dict(zip(NAMES, per_row, strict=True)), costs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution_modes, "time", clock)
        form = choose(new(), program, remaining_rows=remaining)
    alone = costs["plain"] + per_row[0] * remaining
    samples = 3 * (2 * execution_modes.SAMPLE_SECONDS + 4 * BATCH * max(per_row))
    assert clock.now <= 1.2 * alone + samples
    assert per_row[NAMES.index(form)] <= per_row[0]


def test_a_hopeless_form_is_left_after_one_batch(clock: Clock) -> None:
    program = Pretender(
        clock, {"plain": 1e-4, "step": 1e-2, "loop": 2e-4}, dict.fromkeys(NAMES, 0.0)
    )
    assert choose(new(), program, rows=1000, remaining_rows=10**7) == "plain"
    plain, loop = (
        2 * execution_modes.SAMPLE_SECONDS + 3e-3,
        2 * execution_modes.SAMPLE_SECONDS + 6e-3,
    )
    assert clock.now <= plain + loop + 2 * BATCH * 1e-2


def test_what_a_call_costs_is_not_taken_for_what_its_rows_do(clock: Clock) -> None:
    """To hand over a large buffer takes as long for a few of its rows as for all."""
    program = Pretender(
        clock, {"plain": 1e-6, "step": 1e-7, "loop": 2e-6}, dict.fromkeys(NAMES, 0.0)
    )
    program.per_call = {"step": 3e-3}
    selector = new()
    assert choose(selector, program, rows=10**6, remaining_rows=10**8) == "step"
    assert selector.get_timing("step").seconds_per_row < 1.2e-7
    assert clock.now < 3 * 4 * execution_modes.SAMPLE_SECONDS
    assert choose(new(), program, rows=1000, remaining_rows=1000) == "plain"


@pytest.mark.parametrize(("rows", "expected"), [(39, "plain"), (40, "step"), (1000, "step")])
def test_a_form_that_takes_several_batches_is_judged_by_so_many(
    clock: Clock, rows: int, expected: str
) -> None:
    """By fewer it would look like the first form, which trains what is left over."""
    program = Pretender(
        clock, {"plain": 1e-3, "step": 1e-4, "loop": 1.0}, dict.fromkeys(NAMES, 0.0)
    )
    program.batches_at_once = {"step": 4, "loop": 4}
    selector = new()
    assert choose(selector, program, rows=rows, remaining_rows=10**6) == expected
    assert set(selector.take_new_timings()) == (set(NAMES) if expected == "step" else {"plain"})


def test_after_a_hopeless_form_the_others_are_not_tried(clock: Clock) -> None:
    program = Pretender(clock, {"plain": 1e-4, "step": 1.0, "loop": 1.0}, dict.fromkeys(NAMES, 0.0))
    assert choose(new(), program, remaining_rows=10**7) == "plain"
    assert program.used == ["plain", "step"]


@pytest.mark.parametrize(("share", "tried"), [(0.5, True), (0.3, False)])
def test_after_a_form_that_is_faster_the_next_is_tried_sooner(
    clock: Clock, share: float, tried: bool
) -> None:
    """All rows take the first form twelve times what compiling does; of that the second takes six
    or 3.6.
    """
    program = Pretender(
        clock, {"plain": 1e-3, "step": share * 1e-3, "loop": 1e-6}, dict.fromkeys(NAMES, 0.1)
    )
    remaining = round(12 * program.compilation_factor * 0.1 / 1e-3)
    assert choose(new(), program, remaining_rows=remaining) == ("loop" if tried else "step")
    assert ("loop" in program.used) == tried


def test_a_form_that_fails_is_passed_over(clock: Clock) -> None:
    program = Pretender(
        clock, {"plain": 1e-3, "step": None, "loop": 1e-4}, dict.fromkeys(NAMES, 0.0)
    )
    selector = new()
    assert choose(selector, program, remaining_rows=10**6) == "loop"
    assert selector.take_new_timings()["step"].to_json()["seconds_per_row"] is None


def test_another_form_serves_where_the_first_fails(clock: Clock) -> None:
    program = Pretender(
        clock, {"plain": None, "step": 1e-3, "loop": None}, dict.fromkeys(NAMES, 0.1)
    )
    assert choose(new(), program, remaining_rows=1) == "step"


@pytest.mark.parametrize(("before", "used"), [(0.0, ["plain", "step"]), (2.0, ["plain"])])
def test_what_was_found_compiled_does_not_make_others_look_cheap(
    clock: Clock, before: float, used: list[str]
) -> None:
    program = Pretender(
        clock,
        {"plain": 1e-3, "step": 1e-2, "loop": 1e-2},
        {"plain": 0.01, "step": 5.0, "loop": 5.0},
    )
    program.before = {"plain": before}
    selector = new()
    assert choose(selector, program, remaining_rows=10_000) == "plain"
    assert program.used == used
    assert selector.get_timing("plain").compile_seconds == pytest.approx(before + 0.01)


def test_where_no_form_works_keras_fit_does(clock: Clock) -> None:
    selector = new()
    program = Pretender(clock, dict.fromkeys(NAMES), dict.fromkeys(NAMES, 0.0))
    assert choose(selector, program, remaining_rows=10**6) == "keras_fit"
    assert selector.first_error == "ValueError: plain cannot be traced"


def test_memory_that_runs_out_is_no_reason_for_another_form(clock: Clock) -> None:
    class Hungry(Pretender):
        def train(self, *arguments: Any) -> float:
            raise MemoryError

    with pytest.raises(MemoryError):
        choose(new(), Hungry(clock, {}, {}), remaining_rows=10**6)


def test_an_order_is_followed(clock: Clock) -> None:
    program = Pretender(clock, dict.fromkeys(NAMES, 1.0), dict.fromkeys(NAMES, 9.0))
    assert choose(new(), program, forced_mode="loop") == "loop"
    assert clock.now == 0
    with pytest.raises(RequestError, match="unknown; this trainer has plain, step, loop"):
        choose(new(), program, forced_mode="other")


def test_a_buffer_below_one_batch_tells_nothing_about_speed(clock: Clock) -> None:
    program = Pretender(
        clock, {"plain": 3e-3, "step": 2e-3, "loop": 1e-3}, dict.fromkeys(NAMES, 0.1)
    )
    selector = new()
    assert choose(selector, program, rows=BATCH - 1, remaining_rows=10**9) == "plain"
    assert selector.take_new_timings() == {}
    assert choose(selector, program, rows=BATCH, remaining_rows=10**9) == "loop"


def test_infinity_travels_as_null() -> None:
    header = {
        "forms": {
            "use": None,
            "remaining_rows": 1,
            "known": {"step": ModeTiming(float("inf"), 1.0).to_json()},
        }
    }
    assert ModeRequest.from_header(header).cached_timings["step"].seconds_per_row == float("inf")


WIDE = {"plain": 4e-3, "step": 3e-3, "loop": 3.5e-3}


@pytest.mark.parametrize(("per_row", "tried"), [(0.9e-5, True), (1.1e-5, False)])
def test_a_form_for_several_states_is_tried_sooner_where_steps_are_short(
    clock: Clock, per_row: float, tried: bool
) -> None:
    """With batches of ten a step takes 90 or 110 microseconds, and all of them six times what
    compiling does.
    """
    program = Pretender(
        clock, dict.fromkeys((*NAMES, "wide"), per_row), dict.fromkeys((*NAMES, "wide"), 0.1)
    )
    program.lanes = {"wide": 4}
    selector, order, buffer = new(), np.arange(100, dtype=np.int32), SimpleNamespace(rows=100)
    remaining = round(6 * program.compilation_factor * 0.1 / per_row)
    selector.choose(program, ModeRequest(remaining_rows=remaining), buffer, order, BATCH, 4)  # type: ignore[arg-type]
    assert (
        ("wide" in program.used) == tried
        and program.used[0] == NAMES[0]
        and NAMES[1] not in program.used
    )


@pytest.mark.parametrize(
    ("states", "wide", "expected"),
    [
        (4, 4e-3, "wide"),
        (4, 16e-3, "step"),
        (2, 4e-3, "wide"),
        (2, 8e-3, "step"),
        (1, 1e-6, "step"),
        (5, 4e-3, "step"),
    ],
)
def test_a_form_for_several_states_is_judged_by_how_many_it_trains(
    clock: Clock, states: int, wide: float, expected: str
) -> None:
    """Four lanes that take 4 ms a row all together are 1 ms for each of four states, and 2 ms for
    each of two.
    """
    program = Pretender(clock, {**WIDE, "wide": wide}, dict.fromkeys((*NAMES, "wide"), 0.1))
    program.lanes = {"wide": 4}
    selector, found = new(), program
    order, buffer = np.arange(100, dtype=np.int32), SimpleNamespace(rows=100)
    chosen = selector.choose(found, ModeRequest(remaining_rows=10**6), buffer, order, BATCH, states)  # type: ignore[arg-type]
    assert chosen == expected
    assert program.value == 0
    timed = selector.take_new_timings()
    assert ("wide" in timed) == (1 < states <= 4)
    if "wide" in timed:
        assert timed["wide"].seconds_per_row == pytest.approx(wide / 4)
        assert timed["wide"].compile_seconds == pytest.approx(0.1)
