"""The candidates for members of a version, and which of them predict the rows held back."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.templates.budget import estimate_sufficient_seconds
from cerebro_plpy.operations.refit import refit_plan
from cerebro_plpy.operations.refit.refit_plan import RefitTime, limit_candidates, limit_folds
from cerebro_plpy.operations.register import member_candidates
from cerebro_plpy.operations.train.train_ensemble import Candidate
from cerebro_plpy.operations.train_budget import MAX_FOLDED_CONFIGS, MAX_MEMBERS
from cerebro_plpy.preprocessing.scoring.scored_rows import NO_ROWS, ScoredRow, ScoredRows

ROWS: Any = SimpleNamespace()
TIMES = st.builds(RefitTime, elapsed=st.floats(0.0, 300.0), seconds=st.floats(0.0, 300.0))


def make_spec(may_return: bool, rows: int = 400) -> Any:
    return SimpleNamespace(
        may_return=may_return,
        ensemble=10,
        budget=300.0,
        classes=(),
        task="regression",
        metric="rmse",
        split=SimpleNamespace(training_rows=rows, validation_rows=100),
    )


def make_results(may_return: bool = True) -> Any:
    return SimpleNamespace(
        context=SimpleNamespace(check=lambda: None), train_spec=make_spec(may_return)
    )


def make_library(count: int) -> list[Candidate]:
    """Candidates whose network is their place."""
    return [
        Candidate(SimpleNamespace(mst_key=place), place, NO_ROWS, f"template {place % 3}")  # type: ignore[arg-type]
        for place in range(count)
    ]


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of the candidates that have predicted."""
    places: list[int] = []

    def predict(_: object, rows: object, batches: Sequence[Any]) -> list[list[ScoredRows]]:
        assert rows is ROWS
        networks = [request.network for batch in batches for request in batch]
        places.extend(networks)
        return [[ScoredRows.collect([ScoredRow("3", {}, network + 1.0)])] for network in networks]

    monkeypatch.setattr(member_candidates, "predict_in_parallel", predict)
    return places


def test_a_candidate_predicts_once_and_only_if_it_may_be_chosen(predicted: list[int]) -> None:
    """The folds may choose one that has not predicted, and then it does."""
    results = make_results()
    library = make_library(20)
    places = member_candidates.list_first_places(results, library)
    assert places == [*range(MAX_MEMBERS)]
    library = member_candidates.predict_candidates(results, ROWS, library, places)
    shares = member_candidates.choose_holdout_shares(results, library, places)
    assert shares == {2: 1.0}  # its number is the label
    library = member_candidates.predict_candidates(results, ROWS, library, [3, 15])
    assert predicted == [*places, 15]
    assert [place for place, candidate in enumerate(library) if candidate.scored_rows] == predicted


def test_a_candidate_alone_need_not_predict(predicted: list[int]) -> None:
    results = make_results()
    library = make_library(1)
    assert member_candidates.predict_candidates(results, ROWS, library, [0]) == library
    assert member_candidates.choose_holdout_shares(results, library, [0]) == {0: 1.0}
    assert not predicted


@given(TIMES, TIMES, st.floats(0.0, 100.0))
def test_the_clock_decides_nothing_for_a_call_that_gives_its_effort(
    time: RefitTime, later: RefitTime, needed: float
) -> None:
    """Only its budget limits the folds, and the number of candidates is the same."""
    spec = make_spec(may_return=False)
    assert limit_folds(spec, needed, time) == time.seconds
    assert limit_candidates(spec) == MAX_MEMBERS
    later = later._replace(seconds=time.seconds)
    assert limit_folds(spec, needed, later) == limit_folds(spec, needed, time)


@given(TIMES, st.floats(0.0, 100.0), st.integers(1, 10_000))
def test_folds_of_an_open_call_take_a_part_of_its_time(
    time: RefitTime, needed: float, rows: int
) -> None:
    """With folds, a call over few rows takes no longer than is enough for these."""
    spec = make_spec(may_return=True, rows=rows)
    seconds = limit_folds(spec, needed, time)
    extra = max(refit_plan.MIN_FOLDS_SECONDS, refit_plan.FOLDS_FACTOR * time.elapsed)
    assert seconds <= min(time.seconds, needed + extra)
    spare = max(refit_plan.MIN_FOLDS_SECONDS, estimate_sufficient_seconds(rows) - time.elapsed)
    assert seconds <= needed + spare
    assert seconds >= min(time.seconds, needed + min(extra, spare)) - 1e-6
    assert limit_candidates(spec) == MAX_FOLDED_CONFIGS
