"""A run from its first line in the log to its last, whatever ends it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError, QueryCanceled, SegmentLost
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.run import messages
from cerebro_plpy.run.epoch_loop import Orchestrator
from cerebro_plpy.run.log import RunLog
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.run.tasks import Surroundings
from cerebro_plpy.run.training import Past
from cerebro_plpy.run.workers import choose_frameworks, start

Logged = Callable[[int], None]


def nobody(_: int) -> None:
    """Nobody has to hear that a run was logged."""


class Interrupted(NamedTuple):
    """A run that ended early, and what its configurations did so far; the caller holds its lock."""

    run_id: int
    past: Mapping[int, Past]


def train(db: Database, place: Workplace, request: FitRequest, interrupted: Interrupted | None, logged: Logged) -> int:
    """Run the request, or the rest of it; the log says how it ended, whatever ends it. The run id."""
    crew = start(place, request)
    request, workers = choose_frameworks(place, request, crew)
    run_id = interrupted.run_id if interrupted else begun(db, place)
    past = interrupted.past if interrupted else {}
    with recorded(db, place, request, run_id, interrupted, logged) as log:
        orchestrator = Orchestrator(crew.visits, request, workers, log, surroundings(db, place, request), past)
        orchestrator.run()
    log.end()
    refuse_lost(place, log, request)
    if orchestrator.stopped:
        db.info(messages.stopped_line(orchestrator.stopped, orchestrator.evaluations, request))
    if not place.local:  # else the caller's transaction holds them still
        log.drop_states(keep=[place.table for place in orchestrator.states.values()])
    return log.run_id


@contextmanager
def recorded(
    db: Database,
    place: Workplace,
    request: FitRequest,
    run_id: int,
    interrupted: Interrupted | None = None,
    logged: Logged = nobody,
) -> Iterator[RunLog]:
    """A run that is in the log, and of which the log says how it ended where that is by an error."""
    log, pid = RunLog(place.control, run_id), os.getpid()
    try:
        place.show(run_id)
        if interrupted:
            log.resume(pid, request, [key for key, found in interrupted.past.items() if not found.visits])
        else:
            log.begin(request, pid)
        db.info(
            f"run {run_id}: {len(request.configs)} configurations, {len(request.source.segments)} segments,"
            f" {request.spec.epochs} iterations; SELECT * FROM cerebro.progress WHERE run_id = {run_id};"
        )
        logged(run_id)
        yield log
    except BaseException as error:
        stop(place, log, error)
        raise


def refuse_lost(place: Workplace, log: RunLog, request: FitRequest) -> None:
    """End the call of a completed run where its transaction is lost: a statement in it could end the whole server."""
    if place.control.segment_lost:
        server = place.platform.name
        lost = f"run {log.run_id} is completed, but {server} lost a segment meanwhile, and this transaction with it"
        log.outputs_missing(lost)
        name = request.spec.arguments.model_output_table
        raise SegmentLost(lost, hint=f"SELECT cerebro.write_outputs({log.run_id}, '{name}');")


def begun(db: Database, place: Workplace) -> int:
    """The id of a new run, of which this transaction is the orchestrator."""
    while True:  # numbers of which somebody took the lock or a table's name before are passed over
        run_id, taken = place.control.run(sql("run.reserve"))[0]
        if not taken and db.lock("mark_alive", run_id):
            return int(run_id)


def stop(place: Workplace, log: RunLog, error: BaseException) -> None:
    """End what the run began, and log why it ends early."""
    # Some servers cancel by a KeyboardInterrupt.
    cancelled = isinstance(error, KeyboardInterrupt) or getattr(error, "sqlstate", None) == QueryCanceled.sqlstate
    with suppress(CerebroError):  # where the control session is lost too, the run shows as interrupted
        place.stop_workers()
        log.stop("cancelled" if cancelled else "failed", str(error) or "the statement was cancelled")


def surroundings(db: Database, place: Workplace, request: FitRequest) -> Surroundings:
    """What the orchestrator needs of this call."""
    return Surroundings(
        place.check, partial(announce, db, request), partial(announce_failure, db), db.info, place.reopen
    )


def announce(
    db: Database, request: FitRequest, epoch: int, seconds: float, evaluations: Any, losses: Mapping[int, float]
) -> None:
    """Tell the caller about an epoch."""
    db.info(messages.epoch_lines(epoch, seconds, evaluations, losses, request))


def announce_failure(db: Database, mst_key: int, reason: str) -> None:
    """Tell the caller about a configuration that cannot go on."""
    db.info(f"mst_key={mst_key} failed: {reason}")
