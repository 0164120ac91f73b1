"""A call that trains reports what it does: often at first, and with a clock of its own."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.database.call_status import (
    COMPILING,
    EXPLAINING,
    LINE_SECONDS,
    LONG_LINE_SECONDS,
    LONG_SECONDS,
    PACKING,
    STARTING,
    TRAINING,
    CallStatus,
)

MAX_STEP = 2.0


class Caller:
    """A caller with a clock, who notes each line with its time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[tuple[float, str]] = []
        self.status = CallStatus(lambda line: self.lines.append((self.now, line)), lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.status.report_if_due()


def test_a_call_that_does_not_train_reports_nothing() -> None:
    caller = Caller()
    caller.status.enter(PACKING)
    caller.status.exclude(5.0)
    caller.wait(1000.0)
    assert not caller.lines


@given(st.lists(st.floats(0.001, MAX_STEP), min_size=1, max_size=600))
def test_lines_begin_at_once_and_come_in_time(steps: list[float]) -> None:
    caller = Caller()
    caller.status.begin(300.0)
    for step in steps:
        caller.wait(step)
    times = [time - 1000.0 for time, _ in caller.lines]
    assert times[0] == 0.0
    for earlier, later in pairwise([*times, caller.now - 1000.0]):
        due = LINE_SECONDS if earlier < LONG_SECONDS else LONG_LINE_SECONDS
        assert later - earlier <= due + MAX_STEP
    for earlier, later in pairwise(times):
        due = LINE_SECONDS if earlier < LONG_SECONDS else LONG_LINE_SECONDS
        assert later - earlier >= due - 1e-6


@given(st.lists(st.floats(0.001, MAX_STEP), min_size=1, max_size=300))
def test_a_call_without_a_budget_reports_only_what_takes_long(steps: list[float]) -> None:
    caller = Caller()
    caller.status.begin_quietly(EXPLAINING)
    for step in steps:
        caller.wait(step)
    times = [time - 1000.0 for time, _ in caller.lines]
    assert bool(times) == (caller.now >= 1000.0 + LINE_SECONDS)
    for earlier, later in pairwise([0.0, *times]):
        assert LINE_SECONDS - 1e-6 <= later - earlier <= LONG_LINE_SECONDS + MAX_STEP
    assert all(line == f"{time - 1000.0:.0f} s: explaining" for time, line in caller.lines)


def test_a_line_has_the_time_the_phase_and_the_work() -> None:
    caller = Caller()
    status = caller.status
    status.begin(300.0)
    caller.wait(5.0)
    status.enter(PACKING)
    caller.wait(6.0)
    status.enter(COMPILING)
    status.describe_work = lambda: "0 of 11 configurations done"
    caller.wait(10.0)
    status.enter(TRAINING)
    status.describe_work = lambda: "2 of 11 configurations done, best 0.981 accuracy (linear)"
    status.exclude(7.0)
    caller.wait(24.0)
    assert [line for _, line in caller.lines] == [
        "0 s of 300 s: looking at the table",
        "11 s of 300 s: packing",
        "21 s of 300 s: compiling, 0 of 11 configurations done",
        "38 s of 300 s: training, 2 of 11 configurations done, best 0.981 accuracy (linear)",
    ]


def test_a_call_that_resumes_counts_the_time_of_the_call_before() -> None:
    caller = Caller()
    caller.status.begin(300.0, STARTING, 120.4)
    caller.wait(10.0)
    assert [line for _, line in caller.lines] == [
        "120 s of 300 s: starting trainers",
        "130 s of 300 s: starting trainers",
    ]
