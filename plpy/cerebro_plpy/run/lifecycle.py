"""A run from its first line in the log to its last, whatever ends it."""

from __future__ import annotations

import os
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import (
    CerebroError,
    ConnectionFailure,
    ObjectNotReady,
    QueryCanceled,
    SegmentLost,
    ServerGone,
    hidden_run,
)
from cerebro_plpy.platform.call_context import OPEN_ERRORS, CallContext
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.records import replace
from cerebro_plpy.run.activation_cache.builder import build_activations
from cerebro_plpy.run.activation_cache.selection import BuildContext
from cerebro_plpy.run.activation_cache.store import store_activations
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.log.step_log import DecisionRow
from cerebro_plpy.run.loop import messages
from cerebro_plpy.run.loop.automl_messages import AutomlMessages
from cerebro_plpy.run.loop.epoch_loop import EpochLoop
from cerebro_plpy.run.planning import parallelism, run_estimate
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.request.state_routing import count_state_tables
from cerebro_plpy.run.state import interrupted_run
from cerebro_plpy.run.state.config_state import ConfigHistory
from cerebro_plpy.run.workers import warm_start_check
from cerebro_plpy.run.workers.admission import check_quotas, hold_slots, make_slot_request
from cerebro_plpy.run.workers.cost_accounting import CostMeter
from cerebro_plpy.run.workers.run_context import NoSideWork, RunContext, SideWork
from cerebro_plpy.run.workers.sampler import Sampler, Suggest, suggest_nothing
from cerebro_plpy.run.workers.workers import WorkerSet, choose_frameworks, start_workers
from cerebro_plpy.trainer_client import settings

OnLogged = Callable[[int], None]


def ignore_run_id(_: int) -> None:
    """Nobody has to hear that a run was logged."""


class RunListeners(NamedTuple):
    """Who hears of a run: that it is `logged`, and what becomes of it `beside` the workers."""

    on_logged: OnLogged = ignore_run_id
    side_work: SideWork = NoSideWork()


class InterruptedRun(NamedTuple):
    """A run that ended early, and what its configurations did so far; the caller holds its lock."""

    run_id: int
    histories: Mapping[int, ConfigHistory]


def train(
    db: Database,
    workplace: CallContext,
    request: FitRequest,
    interrupted: InterruptedRun | None,
    audience: RunListeners,
    reserved: int | None = None,
) -> int:
    """Run the request, or the rest of it; the log says how it ended, whatever ends it. The run id.

    A new run takes the id that is `reserved` for it.
    """
    run_id = interrupted.run_id if interrupted else reserved or reserve_run_id(db, workplace)
    past, wish = interrupted.histories if interrupted else {}, make_slot_request(workplace, request)
    check_quotas(db, wish)
    log = RunLog(workplace.control, run_id)
    spending = CostMeter(workplace, log)
    with (
        log_run(db, spending, request, interrupted, audience.on_logged),
        hold_slots(db, workplace, log, wish) as places,
    ):
        began = time.monotonic()
        if request.cost_limits:
            spending.load_logged_cost(request.cost_limits)
        request, crew = start_trainers(workplace, request, log, places.count, interrupted)
        if request.deadline:  # workers take their time to start
            request = replace(
                request, deadline=request.deadline.shift_earlier(time.monotonic() - began)
            )
        with open_sampler(workplace, request) as suggest:
            context = replace(
                make_run_context(db, workplace, request),
                side_work=audience.side_work,
                suggest=suggest,
                slots=places,
                read_usage=spending.measure_usage,
                count_usage=spending.charge_quota_periodically,
            )
            loop = EpochLoop(crew.visits, request, crew.workers, log, context, past)
            loop.run()
        store_activations(workplace.control, workplace.settings, request)
        spending.collect_reports(crew.visits)
        log.write_cost(spending.take_unlogged_cost())
        spending.charge_quota()
    # Else it is completed with its output tables, or with the version that is made of it.
    if workplace.segment_lost or not (db.in_procedure or request.spec.train):
        log.end()
    check_segments(workplace, log, request)
    if loop.stopped and not request.is_quiet:
        db.info(messages.describe_stopped(loop.stopped, loop.evaluations, request))
    # Of its own session the caller's transaction holds them still. And while its tables or its
    # version are still to be made a run is not completed, and may have to go on from any of them.
    if not (workplace.is_local or db.in_procedure or request.spec.train):
        log.drop_states(
            keep=[table for stored in loop.model_states.values() for table in stored.tables]
        )
    return log.run_id


def start_trainers(
    workplace: CallContext,
    request: FitRequest,
    log: RunLog,
    places: int,
    interrupted: InterruptedRun | None,
) -> tuple[FitRequest, WorkerSet]:
    """The request with all that is decided when its trainers have started, and workers in so many
    places.
    """
    began, crew = time.monotonic(), start_workers(workplace, request, places)
    request, workers = choose_frameworks(workplace, request, crew, log)
    seconds, crew = time.monotonic() - began, replace(crew, workers=workers)
    software = ChainMap(*(dict(worker.memory.software) for worker in workers))
    if not interrupted:
        warm_start_check.check_warm_states(workplace, request, crew)
    request = build_activations(
        BuildContext(workplace, crew, log), request, interrupted.histories if interrupted else {}
    )
    trainers = run_estimate.describe_trainers(workplace, request, workers)
    request = replace(
        request, plan=run_estimate.make_plan(workplace.control, request, trainers, seconds)
    )
    if note := parallelism.explain_ignored_strategy(request, trainers):
        workplace.db.notice(note)
    log.write_software({"cerebro_db": request.spec.version, **software}, request.plan)
    return request, crew


@contextmanager
def open_sampler(workplace: CallContext, request: FitRequest) -> Iterator[Suggest]:
    """What suggests the configurations that a search is still to draw, if it draws any."""
    drawing = request.search.sampling if request.search else None
    if drawing is None or not drawing.total_remaining:
        yield suggest_nothing
        return
    seed = request.spec.seed
    with Sampler(
        workplace.settings, workplace.check, drawing.space, drawing.sampler, seed
    ) as sampler:
        yield sampler.suggest


@contextmanager
def log_run(
    db: Database,
    spending: CostMeter,
    request: FitRequest,
    interrupted: InterruptedRun | None,
    logged: OnLogged,
) -> Iterator[None]:
    """Write a run into its log, and how it ended where that is by an error.

    A run of which nothing was trained by then is taken out again, unless it was cancelled or is in
    the background: the caller hears of the error.
    """
    workplace, log, pid = spending.context, spending.log, os.getpid()
    past = interrupted.histories if interrupted else {}
    try:
        workplace.show_run(log.run_id)
        if not interrupted:
            log.begin(request, pid)
        elif not log.resume(pid):  # nothing that follows would be written
            raise hidden_run(log.run_id)
        db.info(
            f"run {log.run_id}: {len(request.configs)} configurations, "
            f"{len(request.source.segments)} segments, {request.spec.epochs} iterations; SELECT * "
            f"FROM cerebro.progress WHERE run_id = {log.run_id};"
        )
        logged(log.run_id)
        unvisited = [
            c.mst_key for c in request.configs if not past.get(c.mst_key, ConfigHistory()).visits
        ]
        count = count_state_tables(request)
        usable = (
            interrupted_run.read_usable_tables(workplace.control, log.run_id, past, count)
            if interrupted
            else ()
        )
        log.make_state_tables(request, unvisited, usable)
        yield
    except BaseException as error:
        stop_run(spending, error)
        check_role(workplace, log, error)
        if not (log.has_trained or interrupted or db.in_procedure or _cancels(error)):
            with suppress(CerebroError):  # it stays as failed
                log.discard()
        raise


def check_role(workplace: CallContext, log: RunLog, error: BaseException) -> None:
    """Say so where an error came of what became of the role meanwhile: the log belongs to whoever
    has its name.
    """
    if (
        isinstance(error, CerebroError)
        and not isinstance(error, (ConnectionFailure, QueryCanceled))
        and not log.is_owned()
    ):
        raise ObjectNotReady(
            f"run {log.run_id} is interrupted: role {workplace.role!r}, to which it belongs, was "
            "renamed or dropped, or has lost its privileges",
            detail=error.message,
            hint="An administrator can give it to another role, by the column owner of "
            "cerebro.run_log, which then can resume or drop it.",
        ) from error


@contextmanager
def log_completion_errors(db: Database, gd: dict[str, Any], run_id: int) -> Iterator[None]:
    """Complete a run whose training is over; an error in this last step ends the run, and the log
    has the reason.

    A session of its own logs the reason: the error may have come from the others.
    """
    try:
        yield
    except BaseException as error:
        if db.in_procedure:
            db.rollback()  # its transaction may have changed the row of the run
        with suppress(*OPEN_ERRORS):
            workplace = CallContext(db, gd, settings.read(db), is_local=False)
            try:
                _end_early(workplace, run_id, error)
            finally:
                workplace.close(keep=False)
        raise


def _end_early(workplace: CallContext, run_id: int, error: BaseException) -> None:
    """Log how a run ended, unless the log has its end already."""
    log = RunLog(workplace.control, run_id)
    workplace.control.ignore_cancels()
    with suppress(
        CerebroError
    ):  # such as where the log is locked: the caller hears of the first error
        log.stop(*_ending(error), Cost())
    check_role(workplace, log, error)


def check_segments(workplace: CallContext, log: RunLog, request: FitRequest) -> None:
    """End the call of a completed run where its transaction is lost: a statement in it could end
    the whole server.
    """
    if workplace.segment_lost:
        server = workplace.platform.name
        lost = (
            f"run {log.run_id} is completed, but {server} lost a segment meanwhile, and this "
            "transaction with it"
        )
        log.write_missing_outputs(lost)
        name = request.spec.arguments.model_output_table
        raise SegmentLost(lost, hint=f"SELECT cerebro.write_outputs({log.run_id}, '{name}');")


def reserve_run_id(db: Database, workplace: CallContext) -> int:
    """The id of a new run, of which this transaction is the owner."""
    while True:  # numbers of which somebody took the lock or a table's name before are passed over
        run_id, taken = workplace.control.run(sql("run.reserve"))[0]
        if not taken and db.lock("mark_alive", run_id):
            return int(run_id)


def stop_run(spending: CostMeter, error: BaseException) -> None:
    """End what the run began, and log why it ends early; one whose session or server is told to end
    is interrupted.
    """
    with suppress(
        CerebroError
    ):  # where the control session is lost too, the run shows as interrupted
        spending.abandon()
        spending.context.stop_workers()
        if not isinstance(error, ServerGone):
            spending.log.stop(*_ending(error), spending.take_unlogged_cost())
        spending.charge_quota()


def _ending(error: BaseException) -> tuple[str, str]:
    """Return the status of a run that an error ends, and the reason."""
    return "cancelled" if _cancels(error) else "failed", str(error) or "the statement was cancelled"


def _cancels(error: BaseException) -> bool:
    # Some servers cancel by a KeyboardInterrupt.
    return (
        isinstance(error, KeyboardInterrupt)
        or getattr(error, "sqlstate", None) == QueryCanceled.sqlstate
    )


def make_run_context(db: Database, workplace: CallContext, request: FitRequest) -> RunContext:
    """Return the callbacks of a run that belongs to a call."""

    def report_decisions(rows: Sequence[DecisionRow], _: object) -> None:
        db.info(messages.describe_decisions(rows))

    context = RunContext(
        check=workplace.check,
        report_epoch=partial(report_epoch, db, request),
        report_failure=partial(report_failure, db),
        notify=db.notice,
        reopen=workplace.reopen,
        report_decisions=report_decisions,
    )
    if request.spec.train is not None or request.is_quiet:
        return replace(context, report_epoch=ignore, report_decisions=ignore)
    if request.spec.is_automl:
        automl = AutomlMessages(db.info, request)
        return replace(context, report_decisions=automl.report_decisions)
    return context


def ignore(*_: object) -> None:
    """Report nothing: nobody reads hundreds of epochs, which `cerebro.progress` shows."""


def report_epoch(
    db: Database,
    request: FitRequest,
    epoch: int,
    seconds: float,
    evaluations: Any,
    losses: Mapping[int, float],
) -> None:
    """Tell the caller about an epoch."""
    db.info(messages.describe_epoch(epoch, seconds, evaluations, losses, request))


def report_failure(db: Database, mst_key: int, reason: str) -> None:
    """Tell the caller about a configuration that cannot go on."""
    db.info(f"mst_key={mst_key} failed: {reason}")
