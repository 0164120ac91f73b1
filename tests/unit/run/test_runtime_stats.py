"""How many visits are made together, as far as measured times tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.platform.visit_protocol import BatchResult, EvaluateVisit, TrainVisit
from cerebro_plpy.run.log.form_timings import Timings
from cerebro_plpy.run.state.runtime_stats import CANDIDATE_BYTES, RuntimeStats
from cerebro_plpy.scheduling.schedule.visit_batches import (
    BATCH_HOPS,
    MAX_BATCH_SECONDS,
    MIN_BATCH_SECONDS,
    BatchLimit,
    choose_limit,
)

STATE_BYTES = 1 << 20
RESULT: Mapping[str, Any] = {
    "timings": {},
    "fallback": None,
    "warnings": (),
    "state_bytes": STATE_BYTES,
    "shards": [],
}
SECONDS = st.floats(0.0, 100.0)


def trained_by(compilation: str, *, whole: bool = False) -> Any:
    """A config for which this is compiled; it may learn at the end of epochs only."""
    return SimpleNamespace(
        config=SimpleNamespace(mst_key=1),
        compilation=compilation,
        learns_from_whole_epochs=whole,
    )


def measured(
    jobs: Sequence[tuple[float, Sequence[float]]], commit_seconds: int = 0
) -> RuntimeStats:
    """After jobs of configs with one program, each with what it took its worker beside training,
    and the times of its visits."""
    found = RuntimeStats(Timings(), commit_seconds)
    training = trained_by("one")
    worker: Any = SimpleNamespace(number=0)
    for around, visits in jobs:
        results: list[dict[str, Any]] = [
            {
                "seconds": seconds,
                "timings": {},
                "fallback": None,
                "warnings": (),
                "state_bytes": STATE_BYTES,
                "shards": [],
            }
            for seconds in visits
        ]
        trained = BatchResult([object.__new__(TrainVisit) for _ in visits], results)
        found.add(worker, training, trained)
        found.add_hop(around)
    return found


@given(st.integers(0, 10))
def test_the_first_visit_of_a_program_is_made_alone(commit_seconds: int) -> None:
    assert measured([(1.0, [0.1])], commit_seconds).batch_limit(
        trained_by("another")
    ) == BatchLimit(1)


@given(
    st.lists(st.tuples(SECONDS, st.lists(SECONDS, min_size=1, max_size=3)), min_size=1, max_size=4)
)
def test_visits_train_together_no_longer_than_a_few_hops(
    jobs: list[tuple[float, list[float]]],
) -> None:
    """Nor longer than two seconds, or than a hop."""
    shortest, hop = (
        min(second for _, visits in jobs for second in visits),
        min(around for around, _ in jobs),
    )
    together = measured(jobs).batch_limit(trained_by("one"))
    assert together.visits >= 1 >= together.evaluations
    usual = max(MIN_BATCH_SECONDS, BATCH_HOPS * hop)
    most = min(usual, max(hop, MAX_BATCH_SECONDS)) + 1e-6  # sums of floats
    assert together == BatchLimit(1) or together.visits * shortest <= most


def test_short_visits_train_as_long_as_a_few_hops() -> None:
    """What was shortest counts, for others waited or compiled."""
    reach = measured([(3.0, [9.0]), (0.1, [0.01]), (2.0, [0.2, 0.3])]).batch_limit(
        trained_by("one")
    )
    assert abs(reach.visits - BATCH_HOPS * 0.1 / 0.01) <= 1
    assert reach.evaluations == 1, "how long one takes is not known yet"


def test_evaluations_take_their_time_too() -> None:
    found = measured([(0.1, [0.01])])
    visits: list[Any] = [object.__new__(TrainVisit), object.__new__(EvaluateVisit)]
    trained = {**RESULT, "seconds": 0.01}
    found.add(
        cast(Any, SimpleNamespace(number=0)),
        trained_by("one"),
        BatchResult(visits, [trained, {"seconds": 0.03}]),
    )
    reach = found.batch_limit(trained_by("one"))
    assert abs(reach.visits - BATCH_HOPS * 0.1 / 0.04) <= 1 and reach.evaluations == reach.visits


@pytest.mark.parametrize(
    ("commit_seconds", "together"), [(0, 1), (4, 1), (5, 1), (12, 2), (60, 12)]
)
def test_long_visits_wait_for_their_commit_no_longer_than_they_may(
    commit_seconds: int, together: int
) -> None:
    assert (
        measured([(1.0, [5.0])], commit_seconds).batch_limit(trained_by("one")).visits == together
    )


@pytest.mark.parametrize(("states", "together"), [(1, 80), (2, 80), (4, 50), (8, 25)])
def test_visits_of_several_states_share_their_hops_and_the_longest_time(
    states: int, together: int
) -> None:
    reach = measured([(0.1, [0.01])]).batch_limit(trained_by("one"), states)
    assert abs(reach.visits - together) <= 1


def test_states_that_may_be_the_best_are_held_as_far_as_there_is_room() -> None:
    found = measured([(1.0, [0.1])])
    assert found.max_candidates(trained_by("one")) == CANDIDATE_BYTES // STATE_BYTES
    assert found.max_candidates(trained_by("another")) == 0, "how large they are is not known yet"


@given(
    st.lists(st.tuples(SECONDS, st.integers(1, 4)), min_size=1, max_size=4), st.floats(0.01, 10.0)
)
def test_an_epoch_of_trees_counts_as_a_whole(
    epochs: list[tuple[float, int]], hop_seconds: float
) -> None:
    """Its visits that only collect rows take no time, and say nothing of the others."""
    stats, trees = RuntimeStats(Timings(), 0), trained_by("trees", whole=True)
    worker: Any = SimpleNamespace(number=0)
    visits: list[Any] = []
    results: list[dict[str, Any]] = []
    for epoch, (seconds, segments) in enumerate(epochs, 1):
        for segment in range(segments):
            visit = object.__new__(TrainVisit)
            vars(visit)["epoch"] = epoch
            visits.append(visit)
            is_last = segment == segments - 1
            results.append({**RESULT, "seconds": seconds if is_last else 0.0})
    stats.add(worker, trees, BatchResult(visits, results))
    stats.add_hop(hop_seconds)
    shortest = min(seconds / segments for seconds, segments in epochs)
    assert stats.batch_limit(trees) == choose_limit(shortest, None, hop_seconds, 0)
