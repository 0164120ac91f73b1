"""The choice of members that are trained again, and their schedules over more rows."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.search_space.space import compile_text
from cerebro_plpy.configs.templates.template import Cycles, Rates
from cerebro_plpy.operations.refit import refit
from cerebro_plpy.operations.refit.member_params import set_learning_rate, stretch_schedule
from cerebro_plpy.operations.refit.refit import (
    PastTraining,
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
    alone = estimate_refit_seconds(trainings, workers, factor)
    seconds = estimate_folded_seconds(trainings, workers, factor)
    work = factor * sum(past.seconds for past in trainings) / workers
    assert seconds >= max(alone, 5 * work) - 1e-9


class Session:
    """A session that remembers what happens to runs."""

    def __init__(self) -> None:
        self.discarded: list[int] = []
        self.notices: list[str] = []


def test_nothing_is_left_where_no_member_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first states predict, and a NOTICE says why."""
    session = Session()
    result: Any = SimpleNamespace(
        members=[SimpleNamespace(mst_key=1, share=1.0)], refit_run_id=None
    )
    plan = SimpleNamespace(run=SimpleNamespace(run_id=5), folds=0, epochs={1: 3})
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
    run: Any = SimpleNamespace(run_id=5, spec=SimpleNamespace(train=SimpleNamespace()))
    assert refit.refit(db, context, run, result, 10.0) is result
    assert session.discarded == [6]
    (notice,) = session.notices
    assert "not trained again on all rows: no member was complete" in notice
