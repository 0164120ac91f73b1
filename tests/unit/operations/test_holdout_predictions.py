"""Predictions for packed rows by several networks and workers at once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.operations.train import holdout_predictions
from cerebro_plpy.operations.train.holdout_predictions import (
    HoldoutRequest,
    HoldoutRows,
    predict_in_parallel,
)

BATCHES = st.lists(st.integers(1, 3), min_size=1, max_size=5)
"""Requests of each batch."""


class Visits:
    """Trainers that return the number of a segment and that of a state."""

    def __init__(self) -> None:
        self.order: list[tuple[int, int]] = []  # number of the worker and of the state

    def read_outputs(
        self, worker: Any, dataset: Any, state: Any, job: Any
    ) -> Generator[list[bytes], None, list[bytes]]:
        del job
        yield []
        self.order.append((worker.number, state.key))
        chunk = array("f", [dataset.segment_id, state.key])
        return [chunk.tobytes()]


def run_in_turns(context: Any, workers: Any, steps: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Advance the steps of each worker by one, in turns."""
    del context
    running = dict(zip(workers.workers_by_place, steps, strict=True))
    while running:
        for worker, generator in list(running.items()):
            try:
                next(generator)
            except StopIteration as end:
                del running[worker]
                yield worker, end.value


def predict(
    sizes: Sequence[int],
    segments: int,
    workers: int,
    is_bound: bool,
    deadline: float = math.inf,
    clock: Callable[[], float] = lambda: 0.0,
) -> tuple[list[list[list[float]]], Visits]:
    """Return the predictions of each request by batch, and what the trainers did."""
    visits = Visits()
    states = count()
    batches = [
        [
            HoldoutRequest(
                SimpleNamespace(  # type: ignore[arg-type]
                    recipe=SimpleNamespace(target_scale=None),
                    classes=(),
                    architecture="{}",
                    compile_params="",
                    state=SimpleNamespace(key=next(states)),
                    backend="jax",
                )
            )
            for _ in range(size)
        ]
        for size in sizes
    ]
    numbers = range(segments if is_bound else workers)
    pool = [
        SimpleNamespace(number=n, is_replaceable=not is_bound, segment_id=n if is_bound else None)
        for n in numbers
    ]
    worker_set = SimpleNamespace(workers=pool, visits=visits, workers_by_place=numbers)
    table: Any = SimpleNamespace(segments=tuple(range(segments)))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "describe_program": lambda *_: {},
            "open_scoring_workers": lambda *_: worker_set,
            "run_on_workers": run_in_turns,
            "score_with_retry": lambda _, open_workers, score: score(open_workers()),
            "time": SimpleNamespace(monotonic=clock),
        }.items():
            patch.setattr(holdout_predictions, name, value)
        context: Any = None
        rows = HoldoutRows(table, (), {}, None)
        results = predict_in_parallel(context, rows, batches, deadline)
    for batch in results:
        for scored in batch:
            assert list(scored.targets) == [float(segment) for segment in range(segments)]
    return [[list(scored.columns[0]) for scored in batch] for batch in results], visits


@given(BATCHES, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_each_network_predicts_all_rows_in_their_order(
    sizes: list[int], segments: int, workers: int, is_bound: bool
) -> None:
    """However many workers there are, and whether each of them is bound to a segment or not."""
    predictions, _ = predict(sizes, segments, workers, is_bound)
    states = count()
    assert predictions == [
        [[float(next(states))] * segments for _ in range(size)] for size in sizes
    ]


@given(BATCHES, st.integers(1, 4), st.integers(1, 4))
def test_a_batch_stays_with_one_worker(sizes: list[int], segments: int, workers: int) -> None:
    """Its program is compiled once, and no worker is idle while a batch waits."""
    _, visits = predict(sizes, segments, workers, is_bound=False)
    batch_of_state = [place for place, size in enumerate(sizes) for _ in range(size)]
    workers_of_batch: dict[int, set[int]] = {}
    for worker, state in visits.order:
        workers_of_batch.setdefault(batch_of_state[state], set()).add(worker)
    assert all(len(numbers) == 1 for numbers in workers_of_batch.values())
    used = {worker for worker, _ in visits.order}
    assert len(used) == min(workers, len(sizes))


@given(BATCHES, st.integers(1, 3), st.integers(0, 6))
def test_no_batch_begins_after_the_deadline(sizes: list[int], workers: int, ticks: int) -> None:
    """The results of batches that have begun are complete."""
    clock = count(1)
    predictions, _ = predict(
        sizes, 2, workers, is_bound=False, deadline=ticks, clock=lambda: float(next(clock))
    )
    complete = [place for place, batch in enumerate(predictions) if batch]
    assert complete == [*range(min(ticks, len(sizes)))]
    assert all(len(predictions[place]) == sizes[place] for place in complete)
