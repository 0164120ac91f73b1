"""A call of fit from its arguments to its tables: check everything, train, write the outputs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cerebro_plpy import outputs, report, resources, settings
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.compatibility import check_configs, check_validation
from cerebro_plpy.db import Database
from cerebro_plpy.dispatch import Dispatcher
from cerebro_plpy.errors import CerebroError, InvalidParameter, NullNotAllowed, ObjectNotReady
from cerebro_plpy.model_table import existing
from cerebro_plpy.orchestrator import Orchestrator
from cerebro_plpy.packed import read_packed
from cerebro_plpy.platform import Worker
from cerebro_plpy.platform_postgres import PostgresPlatform
from cerebro_plpy.queries import sql
from cerebro_plpy.records import FitRequest, Relation, RunResult, StoredModel
from cerebro_plpy.run_log import RunLog
from cerebro_plpy.selection import architecture_table, read_configs
from cerebro_plpy.warm import existing_output, warm_states
from cerebro_plpy.workplace import Workplace, check_positive, check_transaction, opened

MODULE = "madlib_keras_fit_multiple"
SCHEDULES = ("longest", "rotation")
QUERY_CANCELED = "57014"


@dataclass(frozen=True)
class FitArguments:
    """The arguments of a fit call as they came, None for NULL."""

    source_table: str | None
    model_output_table: str | None
    model_selection_table: str | None
    num_iterations: int | None
    use_gpus: bool | None
    validation_table: str | None
    metrics_compute_frequency: int | None
    warm_start: bool | None
    name: str | None
    description: str | None
    use_caching: bool | None
    seed: int | None
    schedule: str | None
    workers: int | None


def fit(db: Database, session: dict[str, Any], arguments: FitArguments, version: str) -> int:
    """Train, and make the output tables; the run id."""
    check_transaction(db, MODULE)
    epochs, frequency, schedule = check_arguments(arguments)
    catalog = Catalog(db, MODULE)
    before = existing_output(catalog, arguments.model_output_table) if arguments.warm_start else {}
    output = before[""] if before else catalog.output(arguments.model_output_table, outputs.SUFFIXES)
    relations = {**find_inputs(catalog, arguments), **before}
    with opened(db, session, relations.values(), arguments.workers) as place:
        request = build_request(catalog, place, arguments, (epochs, frequency, schedule))
        if before:
            request = replace(request, warm_states=warm_states(place.reader, before, request.configs))
        result = train(db, place, request)
    outputs.write(db, request, output, result, version)
    return result.run_id


def check_arguments(given: FitArguments) -> tuple[int, int, str]:
    """Number of epochs, metrics frequency and schedule, checked."""
    if given.num_iterations is None:
        raise NullNotAllowed(f"{MODULE} error: num_iterations is NULL; expected a positive whole number.")
    if given.num_iterations < 1:
        raise InvalidParameter(
            f"{MODULE}: Number of iterations cannot be < 1.", detail=f"Received {given.num_iterations}."
        )
    frequency = given.metrics_compute_frequency
    if frequency is not None and not 1 <= frequency <= given.num_iterations:
        raise InvalidParameter(
            f"{MODULE}: metrics_compute_frequency must be in the range (1 - {given.num_iterations}).",
            detail=f"Received {frequency}.", hint="Leave it out to compute metrics after the last iteration only.",
        )  # fmt: skip
    schedule = given.schedule if given.schedule is not None else SCHEDULES[0]
    if schedule not in SCHEDULES:
        raise InvalidParameter(f"{MODULE} error: schedule is {schedule!r}; expected one of {', '.join(SCHEDULES)}.")
    check_positive(MODULE, "workers", given.workers)
    if given.use_gpus and not resources.gpus():
        raise ObjectNotReady("No GPUs configured on hosts.", hint="Leave use_gpus out to train on the processor.")
    return given.num_iterations, frequency or given.num_iterations, schedule


def find_inputs(catalog: Catalog, given: FitArguments) -> dict[str, Relation]:
    """The tables that the call names, and their summaries, where those exist."""
    found = {
        "source": catalog.relation(given.source_table),
        "selection": catalog.relation(given.model_selection_table, "model selection"),
    }
    if given.validation_table is not None:
        found["validation"] = catalog.relation(given.validation_table, "validation")
    for name in list(found):
        summary = catalog.companion(found[name], "_summary")
        if summary:
            found[f"{name}_summary"] = summary
    return found


def build_request(
    catalog: Catalog, place: Workplace, given: FitArguments, checked: tuple[int, int, str]
) -> FitRequest:
    """Read and check all that the run needs; nothing has been written when this fails."""
    epochs, frequency, schedule = checked
    reader = place.reader
    source = read_packed(catalog, reader, given.source_table)
    validation = read_packed(catalog, reader, given.validation_table, "validation") if given.validation_table else None
    selection = catalog.relation(given.model_selection_table, "model selection")
    architectures_name = architecture_table(catalog, selection, reader)
    table = existing(catalog, architectures_name)
    configs = read_configs(catalog, reader, selection)
    architectures = read_architectures(place, table, sorted({c.model_id for c in configs}))
    check_configs(catalog, configs, architectures, source, table)
    if validation:
        check_validation(catalog, source, validation)
    for text in sorted({f"mst_key={c.mst_key}: {note}" for c in configs for note in c.compile.notices}):
        catalog.db.notice(text)
    seed = given.seed if given.seed is not None else secrets.randbits(31)
    rank = report.ranking(configs, validation is not None)
    spec = {**vars(given), "model_arch_table": architectures_name, "object_table": None, "seed": seed,
            "metrics_compute_frequency": frequency, "warm_start": bool(given.warm_start), "schedule": schedule,
            **rank}  # fmt: skip
    return FitRequest(
        source=source, validation=validation, configs=configs, architectures=architectures, architecture_table=table,
        epochs=epochs, evaluate_epochs=metrics_iterations(epochs, frequency), seed=seed, schedule=schedule,
        workers=min(given.workers or resources.parallel_trainers(), len(source.segments)),
        gpus=resources.gpus() if given.use_gpus else 0, warm_states={}, name=given.name, spec=spec,
    )  # fmt: skip


def metrics_iterations(epochs: int, frequency: int) -> tuple[int, ...]:
    """Every frequency-th epoch, and always the last.

    >>> metrics_iterations(7, 2)
    (2, 4, 6, 7)
    """
    return tuple(e for e in range(1, epochs + 1) if e % frequency == 0 or e == epochs)


def read_architectures(place: Workplace, table: Relation, model_ids: list[int]) -> dict[int, StoredModel]:
    """The architectures by model id."""
    rows = place.reader.run(sql("read.architectures", table=table.quoted), (model_ids,))
    return {row[0]: StoredModel(*row) for row in rows}


def train(db: Database, place: Workplace, request: FitRequest) -> RunResult:
    """Run the request; the log says how it ended, whatever ends it."""
    workers, platform = start(place, request, db.check_interrupts)
    run_id = int(place.control.run(sql("run.reserve"))[0][0])
    db.value(sql("session.mark_alive"), run_id)
    log = RunLog(place.control, run_id)
    try:
        started = log.begin(request, db.value(sql("session.pid")))
        db.info(f"run {run_id}: {len(request.configs)} configurations, {len(request.source.segments)} segments,"
                f" {request.epochs} iterations; SELECT * FROM cerebro.progress WHERE run_id = {run_id};")  # fmt: skip
        orchestrator = Orchestrator(platform, request, workers, log)
        orchestrator.run(db.check_interrupts, partial(announce, db, request), place.reopen)
    except BaseException as error:
        stop(place, log, error)
        raise
    ended = log.end()
    log.drop_states(keep=list(orchestrator.states.values()))
    return RunResult(run_id, started, ended, tuple(orchestrator.evaluations), orchestrator.states, orchestrator.failed)


def stop(place: Workplace, log: RunLog, error: BaseException) -> None:
    """End what the run began, and log why it ends early."""
    cancelled = getattr(error, "sqlstate", None) == QUERY_CANCELED
    try:
        place.stop_workers()
        log.stop("cancelled" if cancelled else "failed", str(error))
    except CerebroError:
        pass  # the control session is lost too; the run will show as interrupted, and its error is the one to tell


def start(
    place: Workplace, request: FitRequest, check: Callable[[], None]
) -> tuple[list[Worker], PostgresPlatform]:
    """Workers with their trainers, all started at once; one that cannot be started fails the call before a run begins."""
    workers = place.workers(request.workers)
    trainers = len(workers)
    started = [
        settings.TrainerRequest(trainers=trainers, gpu=number % request.gpus if request.gpus else None)
        for number in range(trainers)
    ]
    tables = 2 if request.validation else 1
    cache = settings.cache_bytes(place.settings, trainers * len(request.source.segments) * tables // trainers)
    platform = PostgresPlatform(started, cache)
    dispatcher: Dispatcher[None] = Dispatcher(check)
    for worker in workers:
        dispatcher.begin(worker.number, worker.session, platform.start(worker))
    while dispatcher.busy():
        for outcome in dispatcher.wait():
            if outcome.error is not None:
                raise outcome.error
    return workers, platform


def announce(
    db: Database, request: FitRequest, epoch: int, seconds: float, evaluations: Any, losses: Mapping[int, float]
) -> None:
    """Tell the caller about an epoch."""
    db.info(report.epoch_lines(epoch, seconds, evaluations, losses, request))
