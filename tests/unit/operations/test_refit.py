"""The choice of members that are trained again, and their schedules over more rows."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.search_space.space import compile_text
from cerebro_plpy.configs.templates.template import Cycles, Rates
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
        is_whole=st.booleans(),
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
    """No more than all of them one after another, and no less than any of them takes at least."""
    seconds = estimate_seconds(trainings, workers)
    assert seconds <= sum(past.seconds for past in trainings) + 1e-9
    for place in range(len(trainings)):
        assert estimate_seconds(trainings[:place], workers) <= seconds + 1e-9
    for past in trainings:
        assert seconds >= past.seconds / (1 if past.is_whole else workers)


@given(TRAININGS, st.integers(1, 4), st.floats(1.0, 2.0))
def test_folds_take_more_time(
    trainings: Sequence[PastTraining], workers: int, factor: float
) -> None:
    """Each of five folds takes what four fifths of the rows take."""
    alone = estimate_refit_seconds(trainings, workers, factor)
    seconds = estimate_folded_seconds(trainings, workers, factor)
    work = factor * sum(past.seconds for past in trainings) / workers
    assert seconds >= max(alone, 5 * work) - 1e-9
