"""A call of fit from its arguments to its tables: check everything, train, write the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from cerebro_plpy import crews, outputs, report, settings
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.db import Database
from cerebro_plpy.errors import CerebroError, QueryCanceled
from cerebro_plpy.orchestrator import Orchestrator, Surroundings
from cerebro_plpy.queries import sql
from cerebro_plpy.records import FitRequest
from cerebro_plpy.request import MODULE, FitArguments, build_request, check_arguments, find_inputs
from cerebro_plpy.run_log import RunLog
from cerebro_plpy.warm import existing_output, warm_states
from cerebro_plpy.workplace import Workplace, check_transaction, opened


def fit(db: Database, session: dict[str, Any], arguments: FitArguments, version: str) -> None:
    """Train, and make the output tables."""
    check_transaction(db, MODULE)
    epochs, frequency, schedule = check_arguments(arguments)
    settings.devices(settings.read(db), arguments.use_gpus)
    catalog = Catalog(db, MODULE)
    before = existing_output(catalog, arguments.model_output_table) if arguments.warm_start else {}
    output = before[""] if before else catalog.output(arguments.model_output_table, outputs.SUFFIXES)
    relations = {**find_inputs(catalog, arguments), **before}
    with opened(db, session, relations.values(), arguments.workers) as place:
        request = build_request(catalog, place, arguments, (epochs, frequency, schedule))
        if before:
            request = replace(request, warm_states=warm_states(place.reader, before, request))
        request.spec["version"] = version
        run_id = train(db, place, request)
    outputs.write(db, run_id, output, refill=bool(before))


def train(db: Database, place: Workplace, request: FitRequest) -> int:
    """Run the request; the log says how it ended, whatever ends it. The run id."""
    crew = crews.start(place, request)
    request, workers = crews.chosen(place, request, crew)
    run_id = int(place.control.run(sql("run.reserve"))[0][0])
    db.value(sql("session.mark_alive"), run_id)
    log = RunLog(place.control, run_id)
    try:
        log.begin(request, db.value(sql("session.pid")))
        db.info(f"run {run_id}: {len(request.configs)} configurations, {len(request.source.segments)} segments,"
                f" {request.epochs} iterations; SELECT * FROM cerebro.progress WHERE run_id = {run_id};")  # fmt: skip
        orchestrator = Orchestrator(crew.platform, request, workers, log, surroundings(db, place, request))
        orchestrator.run()
    except BaseException as error:
        stop(place, log, error)
        raise
    log.end()
    if not place.local:  # else the caller's transaction holds them still
        log.drop_states(keep=list(orchestrator.states.values()))
    return run_id


def stop(place: Workplace, log: RunLog, error: BaseException) -> None:
    """End what the run began, and log why it ends early."""
    cancelled = getattr(error, "sqlstate", None) == QueryCanceled.sqlstate
    with suppress(CerebroError):  # where the control session is lost too, the run shows as interrupted
        place.stop_workers()
        log.stop("cancelled" if cancelled else "failed", str(error))


def surroundings(db: Database, place: Workplace, request: FitRequest) -> Surroundings:
    """What the orchestrator needs of this call."""
    return Surroundings(
        place.check, partial(announce, db, request), partial(announce_failure, db), db.info, place.reopen
    )


def announce(
    db: Database, request: FitRequest, epoch: int, seconds: float, evaluations: Any, losses: Mapping[int, float]
) -> None:
    """Tell the caller about an epoch."""
    db.info(report.epoch_lines(epoch, seconds, evaluations, losses, request))


def announce_failure(db: Database, mst_key: int, reason: str) -> None:
    """Tell the caller about a configuration that cannot go on."""
    db.info(f"mst_key={mst_key} failed: {reason}")
