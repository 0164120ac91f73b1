"""What the log knows of a run that was interrupted, and the end of those who may still work for
it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import ObjectInUse, ObjectNotReady
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import StoredState, best_table, state_tables
from cerebro_plpy.platform.visit_protocol import VisitResult
from cerebro_plpy.run.request.run_request import Evaluation
from cerebro_plpy.run.state.config_state import Kept, Past
from cerebro_plpy.run.workers.tasks import Step
from cerebro_plpy.scheduling.schedule.schedule import Visit
from cerebro_plpy.scheduling.search.promotion_rules import Decision
from cerebro_plpy.scheduling.search.search_state import DecisionBatch, group_by_result

PATIENCE_SECONDS = 2.0
END_SECONDS = 10.0
PAUSE_SECONDS = 0.05


def read(control: Session, run_id: int, configs: Iterable[Config]) -> dict[int, Past]:
    """By mst_key, what these configurations did so far. ObjectNotReady where a state is gone."""
    visits: dict[int, list[tuple[Visit, VisitResult]]] = {}
    for mst_key, epoch, segment_id, kind, *result in control.run(sql("run.past_visits"), (run_id,)):
        visit = Visit(epoch, mst_key, segment_id, kind)
        visits.setdefault(mst_key, []).append((visit, VisitResult(*result)))
    for (mst_key,) in control.run(sql("run.lost_states"), (run_id,)):
        raise ObjectNotReady(
            f"the state of mst_key {mst_key} of run {run_id} is gone",
            detail="Its table was dropped, or the transaction that trained in its own session was "
            "rolled back.",
            hint="Train again.",
        )
    attempts: dict[int, dict[Step, int]] = {}
    for mst_key, visit_no, count in control.run(sql("run.past_attempts"), (run_id,)):
        attempts.setdefault(mst_key, {})[visit_no] = count
    for mst_key, epoch, segment_id, count in control.run(sql("run.past_evaluations"), (run_id,)):
        attempts.setdefault(mst_key, {})[Visit(epoch, mst_key, segment_id, "evaluate")] = count
    metrics: dict[int, list[tuple[Any, ...]]] = {}
    for mst_key, *logged in control.run(sql("run.past_metrics"), (run_id,)):
        metrics.setdefault(mst_key, []).append(tuple(logged))
    best = {
        mst_key: Kept(epoch, StoredState(best_table(run_id, mst_key, epoch), segment_id, base))
        for mst_key, epoch, segment_id, base in control.run(sql("run.past_best"), (run_id,))
    }
    released = {mst_key for (mst_key,) in control.run(sql("run.past_released"), (run_id,))}
    return {
        c.mst_key: Past(
            visits.get(c.mst_key, []),
            _evaluations(
                c,
                metrics.get(c.mst_key, ()),
                max((v.epoch for v, _ in visits.get(c.mst_key, [])), default=0),
            ),
            attempts.get(c.mst_key, {}),
            best.get(c.mst_key),
            c.mst_key in released,
        )
        for c in configs
    }


def read_usable_tables(
    control: Session, run_id: int, past: Mapping[int, Past], count: int
) -> set[str]:
    """Return the state tables, `count` of each configuration, that an earlier attempt of a run has
    made for it.

    They need not be made anew, and a backup may hold them for hours. A table with rows is usable
    only if its configuration has tried a visit before: the first visit of the others expects an
    empty table.
    """
    attempted_keys = [mst_key for mst_key, history in past.items() if history.attempts]
    emptied_tables = [
        name for mst_key in attempted_keys for name in state_tables(run_id, mst_key, count)
    ]
    return {
        name for (name,) in control.run(sql("run.usable_state_tables"), (run_id, emptied_tables))
    }


def _evaluations(
    config: Config, logged: Iterable[tuple[Any, ...]], newest: int
) -> list[Evaluation]:
    """Those of epochs up to the newest one: of tours that a lost session may have committed,
    nothing counts.
    """
    found = []
    for epoch, dataset, names, values, elapsed in logged:
        if epoch > newest:
            continue
        by_name = dict(zip(names, values))
        metrics = tuple(by_name[name] for name, _ in config.metrics)
        found.append(Evaluation(config.mst_key, epoch, dataset, by_name["loss"], metrics, elapsed))
    return found


def decisions(control: Session, run_id: int) -> tuple[DecisionBatch, ...]:
    """What a search has decided so far, result by result."""
    rows = control.run(sql("run.past_decisions"), (run_id,))
    return group_by_result((cause, act, Decision(*made)) for *made, cause, act in rows)


def replans(control: Session, run_id: int) -> tuple[int, str | None]:
    """How often a run has changed its strategy so far, and to which at last."""
    ((count, strategy),) = control.run(sql("run.past_replans"), (run_id,))
    return count, strategy


def await_workers(workplace: CallContext, run_id: int) -> None:
    """See the workers of the interrupted run gone, so that none of them commits beside those to
    come.

    A worker whose orchestrator is gone ends by itself within a second; one that does not is ended.
    """
    began = time.monotonic()
    while left := [row[0] for row in workplace.control.run(sql("run.workers_left"), (run_id,))]:
        waited = time.monotonic() - began
        if waited > END_SECONDS:
            raise ObjectInUse(
                f"workers of run {run_id} are still there: processes {left}",
                hint="SELECT pg_terminate_backend(pid) ends them; then resume again.",
            )
        if waited > PATIENCE_SECONDS:
            workplace.control.run(sql("run.end_workers"), (left,))
        workplace.check()
        time.sleep(PAUSE_SECONDS)
