"""The choice of members that are trained again, and their schedules over more rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.search_space.space import compile_text
from cerebro_plpy.configs.templates.template import Cycles, Rates
from cerebro_plpy.operations.refit import refit, refit_plan
from cerebro_plpy.operations.refit.member_params import set_learning_rate, stretch_schedule
from cerebro_plpy.operations.refit.refit_plan import (
    PastTraining,
    RefitTime,
    Speed,
    estimate_folded_seconds,
    estimate_refit_seconds,
    estimate_seconds,
)

CYCLES = st.builds(
    Cycles, first=st.integers(1, 3), factor=st.integers(1, 3), number=st.integers(1, 4)
)
TRAININGS = st.lists(
    st.builds(
        PastTraining,
        mst_key=st.integers(1, 9),
        epochs=st.integers(1, 9),
        seconds=st.floats(0.0, 100.0),
        state_bytes=st.integers(0, 9),
        is_of_trees=st.booleans(),
    ),
    max_size=5,
)


def write_params(rate: object) -> str:
    return compile_text(
        {"optimizer": "AdamW", "weight_decay": 0.1, "learning_rate": rate, "loss": "mse"}
    )


@given(st.integers(1, 50), st.integers(1, 200), st.integers(1, 200), st.none() | CYCLES)
def test_a_schedule_takes_as_many_epochs_of_another_length(
    epochs: int, steps: int, new_steps: int, cycles: Cycles | None
) -> None:
    """It is the schedule that the template would have written for the other rows."""
    before = write_params(Rates(steps, epochs, cycles).make_schedule(0.01))
    after = write_params(Rates(new_steps, epochs, cycles).make_schedule(0.01))
    stretched = stretch_schedule(before, steps, new_steps)
    assert parse_compile_params(stretched, None) == parse_compile_params(after, None)


def test_a_number_is_no_schedule() -> None:
    text = write_params(0.01)
    assert stretch_schedule(text, 10, 20) == text
    rate = parse_compile_params(set_learning_rate(text, 0.5), None).optimizer.config
    assert rate["learning_rate"] == 0.5 and rate["weight_decay"] == 0.1


@given(TRAININGS, st.integers(1, 4))
def test_more_members_take_more_time(trainings: Sequence[PastTraining], workers: int) -> None:
    """No more than all of them one after another, and no less than any of them takes."""
    seconds = estimate_seconds(trainings, workers)
    assert seconds <= sum(past.seconds for past in trainings) + 1e-9
    for place in range(len(trainings)):
        assert estimate_seconds(trainings[:place], workers) <= seconds + 1e-9
    for past in trainings:
        assert seconds >= past.seconds


@given(TRAININGS, st.integers(1, 4), st.floats(1.0, 2.0))
def test_folds_take_more_time(
    trainings: Sequence[PastTraining], workers: int, factor: float
) -> None:
    """Each of five folds takes what four fifths of the rows take."""
    speed = Speed(workers, factor)
    alone = estimate_refit_seconds(trainings, speed)
    seconds = estimate_folded_seconds(trainings, speed)
    work = factor * sum(past.seconds for past in trainings) / workers
    assert seconds >= max(alone, 5 * work) - 1e-9


@given(TRAININGS, TRAININGS, st.integers(1, 4), st.floats(0.0, 300.0))
def test_other_configurations_take_no_more_time_and_disk_than_there_are(
    members: Sequence[PastTraining], others: Sequence[PastTraining], workers: int, limit: float
) -> None:
    """Members come first; without limits, all others follow."""
    speed = Speed(workers, 1.0)
    others = [past._replace(state_bytes=past.state_bytes << 22) for past in others]
    selection = refit_plan.add_extras(members, others, speed, limit)
    assert selection[: len(members)] == [*members]
    added = selection[len(members) :]
    assert sum(6 * past.state_bytes for past in added) <= refit_plan.MAX_FOLD_BYTES
    if added:
        assert estimate_folded_seconds(selection, speed) <= limit
    unlimited = refit_plan.add_extras(
        members, [past._replace(state_bytes=0) for past in others], speed, math.inf
    )
    assert len(unlimited) == len(members) + len(others)


class Session:
    """A session that remembers what happens to runs."""

    def __init__(self) -> None:
        self.discarded: list[int] = []
        self.notices: list[str] = []


def test_nothing_is_left_where_no_member_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first states predict, and a NOTICE says why."""
    session = Session()
    run: Any = SimpleNamespace(run_id=5, spec=SimpleNamespace(train=SimpleNamespace()))
    plan = SimpleNamespace(run=run, folds=0, epochs={1: 3})
    inputs = SimpleNamespace(read=lambda *_: SimpleNamespace(source=None))
    terms = SimpleNamespace(is_wanted=True, obstacle=None)
    for name, value in {
        "RefitTerms": SimpleNamespace(from_spec=lambda _: terms),
        "_discard_abandoned_runs": lambda *_: None,
        "plan_refit": lambda *_: plan,
        "Catalog": lambda *_: None,
        "find_packed_inputs": lambda *_: inputs,
        "reserve_run_id": lambda *_: 6,
        "pack_all_rows": lambda *_: None,
        "make_refit_request": lambda *_: None,
        "train": lambda *_: None,
        "read_complete_states": lambda *_: {},
        "discard_run": lambda _, run_id: session.discarded.append(run_id),
        "drop_packed_tables": lambda *_: None,
    }.items():
        monkeypatch.setattr(refit, name, value)
    db: Any = SimpleNamespace(notice=session.notices.append, call_limit=SimpleNamespace())
    context: Any = SimpleNamespace(control=None, reader=None, show_run=lambda _: None)
    refitted = refit.refit(db, context, run, [1], {1: 1.0}, RefitTime(5.0, 10.0))
    assert refitted == refit.Refit({1: 1.0})
    assert session.discarded == [6]
    (notice,) = session.notices
    assert "not trained again on all rows: no member was complete" in notice
