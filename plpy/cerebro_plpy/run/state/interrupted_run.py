"""Interrupted runs: their history in the log, and the end of their last workers."""

from __future__ import annotations

import time
from collections import defaultdict
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
from cerebro_plpy.run.state.config_state import ConfigHistory, RetainedState
from cerebro_plpy.run.workers.tasks import AttemptKey
from cerebro_plpy.scheduling.schedule.schedule import Visit
from cerebro_plpy.scheduling.search.promotion_rules import Decision
from cerebro_plpy.scheduling.search.search_state import DecisionBatch, group_by_result

PATIENCE_SECONDS = 2.0
END_SECONDS = 10.0
PAUSE_SECONDS = 0.05


def read_histories(
    control: Session, run_id: int, configs: Iterable[Config]
) -> dict[int, ConfigHistory]:
    """Read what configurations did so far, by mst_key.

    Raises:
        ObjectNotReady: a state is gone.
    """
    for (mst_key,) in control.run(sql("run.lost_states"), (run_id,)):
        raise ObjectNotReady(
            f"the state of mst_key {mst_key} of run {run_id} is gone",
            detail="Its table was dropped, or the transaction that trained in its own session was "
            "rolled back.",
            hint="Train again.",
        )
    visits: dict[int, list[tuple[Visit, VisitResult]]] = defaultdict(list)
    for mst_key, epoch, segment_id, kind, *result in control.run(sql("run.past_visits"), (run_id,)):
        visit = Visit(epoch, mst_key, segment_id, kind)
        visits[mst_key].append((visit, VisitResult(*result)))
    attempts: dict[int, dict[AttemptKey, int]] = defaultdict(dict)
    for mst_key, visit_no, count in control.run(sql("run.past_attempts"), (run_id,)):
        attempts[mst_key][visit_no] = count
    for mst_key, epoch, segment_id, count in control.run(sql("run.past_evaluations"), (run_id,)):
        attempts[mst_key][Visit(epoch, mst_key, segment_id, "evaluate")] = count
    metrics: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for mst_key, *logged in control.run(sql("run.past_metrics"), (run_id,)):
        metrics[mst_key].append(tuple(logged))
    best = {}
    for mst_key, epoch, segment_id, base in control.run(sql("run.past_best"), (run_id,)):
        stored = StoredState(best_table(run_id, mst_key, epoch), segment_id, base)
        best[mst_key] = RetainedState(epoch, stored)
    released = {mst_key for (mst_key,) in control.run(sql("run.past_released"), (run_id,))}
    histories = {}
    for config in configs:
        key = config.mst_key
        newest_epoch = max((visit.epoch for visit, _ in visits[key]), default=0)
        histories[key] = ConfigHistory(
            visits=visits[key],
            evaluations=_parse_evaluations(config, metrics[key], newest_epoch),
            attempts=attempts[key],
            best=best.get(key),
            released=key in released,
        )
    return histories


def read_usable_tables(
    control: Session, run_id: int, past: Mapping[int, ConfigHistory], count: int
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


def _parse_evaluations(
    config: Config, rows: Iterable[tuple[Any, ...]], newest_epoch: int
) -> list[Evaluation]:
    """Return the logged evaluations of a configuration.

    Args:
        newest_epoch: epoch of the newest state. Later evaluations belong to visits of a lost
            session, which do not count.
    """
    evaluations = []
    for epoch, dataset, names, values, elapsed in rows:
        if epoch > newest_epoch:
            continue
        by_name = dict(zip(names, values))
        metrics = tuple(by_name[name] for name, _ in config.metrics)
        evaluations.append(
            Evaluation(config.mst_key, epoch, dataset, by_name["loss"], metrics, elapsed)
        )
    return evaluations


def read_decisions(control: Session, run_id: int) -> tuple[DecisionBatch, ...]:
    """Read the decisions of a run so far, batch by batch."""
    rows = control.run(sql("run.past_decisions"), (run_id,))
    return group_by_result((cause, act, Decision(*decision)) for *decision, cause, act in rows)


def read_replans(control: Session, run_id: int) -> tuple[int, str | None]:
    """Read how often a run has changed its strategy, and the newest strategy."""
    ((count, strategy),) = control.run(sql("run.past_replans"), (run_id,))
    return count, strategy


def await_workers(context: CallContext, run_id: int) -> None:
    """Wait until the workers of the interrupted run have ended, so that none commits any more.

    A worker ends by itself within a second after its run's session. Others are terminated.

    Raises:
        ObjectInUse: a worker does not end.
    """
    began = time.monotonic()
    while True:
        pids = [pid for (pid,) in context.control.run(sql("run.workers_left"), (run_id,))]
        if not pids:
            return
        seconds = time.monotonic() - began
        if seconds > END_SECONDS:
            raise ObjectInUse(
                f"workers of run {run_id} are still there: processes {pids}",
                hint="pg_terminate_backend(pid) ends them; then resume again.",
            )
        if seconds > PATIENCE_SECONDS:
            context.control.run(sql("run.end_workers"), (pids,))
        context.check()
        time.sleep(PAUSE_SECONDS)
