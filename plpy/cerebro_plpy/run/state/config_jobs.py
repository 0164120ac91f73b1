"""The jobs of one configuration, as its workers need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, groupby
from typing import Any

from cerebro_plpy.platform.job import Dataset, StateSource, Sums
from cerebro_plpy.platform.state_tables import best_table
from cerebro_plpy.platform.visit_protocol import BatchResult, BatchVisit, BestState, EvaluateVisit
from cerebro_plpy.run.request.early_stopping import find_best_epoch
from cerebro_plpy.run.request.visit_jobs import (
    Attempt,
    describe_program,
    make_batch_evaluation,
    make_evaluate_visit,
    make_later_state,
    make_program_key,
    make_train_visit,
    select_evaluation_rows,
    select_training_rows,
)
from cerebro_plpy.run.state.config_state import ConfigState, add_parts, make_evaluations
from cerebro_plpy.scheduling.schedule.schedule import Visit, VisitBatch


def list_datasets(state: ConfigState, batch: VisitBatch) -> Iterator[Dataset]:
    """Yield the partitions that a trainer needs for a batch."""
    for visit in batch:
        yield select_training_rows(state.request, state.config, visit.segment_id)
        if visit.kind == "evaluate":
            for _, rows in select_evaluation_rows(state.request, state.config, visit):
                yield rows


def build_visits(
    state: ConfigState,
    batch: VisitBatch,
    remaining_rows: int,
    timings: Mapping[str, Any],
    grow_until: float | None = None,
) -> list[BatchVisit]:
    """Return the visits of a batch, which has begun, as its worker needs them.

    Args:
        batch: visits of which the first one leaves a state.
        remaining_rows: rows that the program has still to train on a worker.
        timings: known timings of execution modes.
        grow_until: time at which trees end to grow, in seconds since 1970; None if they need not.
    """
    request = state.request
    config = state.config
    run_id = state.run_id
    source = state.route.state_before(batch[0], state.state)
    if state.unstored:
        source = make_later_state(run_id, config.mst_key, state.visits + state.unstored, None)
    state_number = state.route.state_number(batch[0], state.stored_states + bool(state.unstored))
    attempt = state.attempts[state.attempt_key(batch)]
    numbers = count(state.visit_no(batch[0]))
    visits: list[BatchVisit] = []
    for (_, kind), group in groupby(batch, lambda visit: (visit.epoch, visit.kind)):
        stage = tuple(group)
        if kind == "evaluate":
            evaluation = make_evaluate_visit(request, config, run_id, stage, 1, source)
            visits.append(make_batch_evaluation(request, config, evaluation))
            continue
        for visit, visit_no in zip(stage, numbers):
            # Nobody knows yet what the unstored state will leave in the tables.
            free = set[str]() if state.unstored else state.free_tables(visit)
            numbered = Attempt(
                visit_no,
                attempt,
                remaining_rows,
                timings,
                state_number,
                free,
                {table for table in free if not state.table_segments[table]},
                state.route.table_count,
                state.compilation,
                list_grown_segments(state, stage, visit),
                grow_until,
            )
            visits.append(make_train_visit(request, config, run_id, visit, numbered, source))
            source = make_later_state(run_id, config.mst_key, visit_no, None)
    return visits


def list_grown_segments(state: ConfigState, stage: VisitBatch, visit: Visit) -> Sequence[int]:
    """Return the segments over whose rows a visit grows trees: all, if it is the last of an epoch.

    Args:
        stage: the visits of the epoch. Networks learn at each of them.
    """
    if not state.learns_from_whole_epochs or visit != stage[-1]:
        return ()
    return [stage_visit.segment_id for stage_visit in stage]


def build_evaluation(state: ConfigState, batch: VisitBatch) -> EvaluateVisit:
    """Return an evaluation over segments, which has begun, as its worker needs it."""
    attempt = state.attempts[state.attempt_key(batch)]
    return make_evaluate_visit(
        state.request, state.config, state.run_id, batch, attempt, state.state
    )


def add_up(state: ConfigState, epoch: int) -> Sums:
    """Return the sums of a complete evaluation."""
    parts = state.parts[epoch]
    # Always in the same order: floating-point sums depend on it, and decisions on the sums.
    total = add_parts(parts[segment] for segment in sorted(parts))
    key = make_program_key(state.run_id, state.mst_key)
    return Sums(
        describe_program(state.request, state.config),
        total["sums"],
        total["rows"],
        key,
        state.request.spec.target_scale,
    )


def newest_as_best(state: ConfigState, epoch: int) -> BestState:
    """Return the newest state as the one to retain of an epoch."""
    assert state.stored is not None
    return _best_state(state, epoch, state.state, state.stored.segment_id)


def find_best(state: ConfigState, result: BatchResult) -> BestState | None:
    """Return the state of a batch that is better than all before; None if there is none."""
    evaluations = [
        evaluation
        for visit, measured in result.evaluations
        for evaluation in make_evaluations(
            state.mst_key, visit.epoch, measured["metrics"], elapsed=0.0
        )
    ]
    best = find_best_epoch(state.config, state.request, [*state.evaluations, *evaluations])
    sources = [visit.state for visit, _ in result.evaluations if visit.epoch == best]
    if best is None or not sources:
        return None
    segments = [visit.dataset.segment_id for visit, _ in result.training if visit.epoch <= best]
    return _best_state(state, best, sources[0], segments[-1])


def _best_state(
    state: ConfigState, epoch: int, source: StateSource, segment_id: int | None
) -> BestState:
    key = state.mst_key
    table = best_table(state.run_id, key, epoch)
    replaced = state.best.stored.table if state.best else None
    return BestState(state.run_id, key, epoch, source, segment_id, table, replaced)
