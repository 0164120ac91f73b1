"""The life of a run, from its first line in the log to its last, whatever ends it."""

from __future__ import annotations

import os
import time
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from cerebro_plpy.database.call_status import COMPILING, STARTING
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import (
    CerebroError,
    ConnectionFailure,
    InsufficientPrivilege,
    ObjectNotReady,
    QueryCanceled,
    SegmentLost,
    ServerGone,
    hidden_run,
)
from cerebro_plpy.platform.call_context import OPEN_ERRORS, CallContext
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.activation_cache.builder import build_activations
from cerebro_plpy.run.activation_cache.selection import BuildContext
from cerebro_plpy.run.activation_cache.store import store_activations
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.loop import messages
from cerebro_plpy.run.loop.automl_messages import AutomlMessages
from cerebro_plpy.run.loop.epoch_loop import EpochLoop
from cerebro_plpy.run.planning import parallelism, run_estimate
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.request.state_routing import count_state_tables
from cerebro_plpy.run.state import interrupted_run
from cerebro_plpy.run.state.config_state import ConfigHistory
from cerebro_plpy.run.state.limits import NEVER
from cerebro_plpy.run.workers import warm_start_check
from cerebro_plpy.run.workers.admission import check_quotas, hold_slots, make_slot_request
from cerebro_plpy.run.workers.cost_accounting import CostMeter
from cerebro_plpy.run.workers.run_context import NoSideWork, RunContext, SideWork
from cerebro_plpy.run.workers.sampler import Sampler, Suggest, suggest_nothing
from cerebro_plpy.run.workers.workers import WorkerSet, choose_frameworks, start_workers
from cerebro_plpy.trainer_client import settings

OnLogged = Callable[[int], None]
"""Takes the id of a run that was logged."""


def ignore_run_id(_: int) -> None:
    """Ignore that a run was logged."""


class RunListeners(NamedTuple):
    """Callbacks of the caller of a run."""

    on_logged: OnLogged = ignore_run_id
    side_work: SideWork = NoSideWork()


class InterruptedRun(NamedTuple):
    """A run that ended early; the caller holds its lock."""

    run_id: int
    histories: Mapping[int, ConfigHistory]  # of its configurations, by mst_key


def train(
    db: Database,
    context: CallContext,
    request: FitRequest,
    interrupted: InterruptedRun | None,
    listeners: RunListeners,
    reserved_id: int | None = None,
) -> int:
    """Execute a request, or the rest of it, and log how it ended; return the run id.

    Args:
        interrupted: the run to resume, if any.
        reserved_id: the id of a new run; if not given, one is reserved.
    """
    run_id = interrupted.run_id if interrupted else reserved_id
    if run_id is None:
        run_id = reserve_run_id(db, context)
    histories = interrupted.histories if interrupted else None
    slot_request = make_slot_request(context, request)
    check_quotas(db, slot_request)
    log = RunLog(context.control, run_id)
    meter = CostMeter(context, log)
    with (
        log_run(db, meter, request, interrupted, listeners.on_logged),
        hold_slots(db, context, log, slot_request) as slots,
    ):
        start = time.monotonic()
        log.enter_phase(db, STARTING, (request.deadline or NEVER).end)
        if request.cost_limits:
            meter.load_logged_cost(request.cost_limits)
        request, worker_set = start_trainers(context, request, log, slots.count, histories)
        if request.deadline:  # starting the trainers has taken a part of the budget
            deadline = request.deadline.shift_earlier(time.monotonic() - start)
            request = replace(request, deadline=deadline)
        with open_sampler(context, request) as suggest:
            run_context = replace(
                make_run_context(db, context, request),
                side_work=listeners.side_work,
                suggest=suggest,
                slots=slots,
                read_usage=meter.measure_usage,
                count_usage=meter.charge_quota_periodically,
            )
            loop = EpochLoop(
                worker_set.visits, request, worker_set.workers, log, run_context, histories or {}
            )
            db.status.describe_work = loop.describe_work
            log.enter_phase(db, COMPILING, loop.remaining)
            loop.run()
        # A trainer whose first start failed has been started again since.
        log.write_software(dict(list_software(worker_set.workers)), None)
        store_activations(context.control, context.settings, request)
        meter.collect_reports(worker_set.visits)
        log.write_cost(meter.take_unlogged_cost())
        meter.charge_quota()
    finish_training(db, context, request, log, loop)
    return log.run_id


def finish_training(
    db: Database, context: CallContext, request: FitRequest, log: RunLog, loop: EpochLoop
) -> None:
    """Complete a run without outputs, and report the configurations that a limit has ended."""
    # Other runs are completed together with their output tables or their model version.
    is_complete = not (db.in_procedure or request.spec.train)
    if context.segment_lost or is_complete:
        log.end()
    check_segments(context, log, request)
    if loop.stopped and not request.is_quiet:
        limit = loop.limit
        db.info(messages.describe_stopped(limit, loop.stopped, loop.evaluations, request))
    # Other runs may have to be resumed from any state until then. In the caller's own session, the
    # transaction still holds the states.
    if is_complete and not context.is_local:
        log.drop_states(
            keep=[table for state in loop.model_states.values() for table in state.tables]
        )


def start_trainers(
    context: CallContext,
    request: FitRequest,
    log: RunLog,
    slots: int,
    histories: Mapping[int, ConfigHistory] | None,
) -> tuple[FitRequest, WorkerSet]:
    """Start the trainers; return the request with all decisions that depend on them.

    Args:
        histories: those of a run that is resumed.
    """
    start = time.monotonic()
    worker_set = start_workers(context, request, slots)
    request, workers = choose_frameworks(context, request, worker_set, log)
    startup_seconds = time.monotonic() - start
    worker_set = replace(worker_set, workers=workers)
    if histories is None:
        warm_start_check.check_warm_states(context, request, worker_set)
    build = BuildContext(context, worker_set, log)
    request = build_activations(build, request, histories or {})
    trainers = run_estimate.describe_trainers(context, request, workers)
    plan = run_estimate.make_plan(context.control, request, trainers, startup_seconds)
    request = replace(request, plan=plan)
    notice = parallelism.explain_ignored_strategy(request, trainers)
    if notice:
        context.db.notice(notice)
    software = {"cerebro_db": request.spec.version, **list_software(workers)}
    log.write_software(software, request.plan)
    return request, worker_set


def list_software(workers: Sequence[Worker]) -> Mapping[str, str]:
    """Return the versions of libraries that trainers have reported at their start."""
    return ChainMap(*(dict(worker.memory.software) for worker in workers))


@contextmanager
def open_sampler(context: CallContext, request: FitRequest) -> Iterator[Suggest]:
    """Provide the sampler of a search that has still to sample configurations."""
    sampling = request.sampling
    if sampling is None or not sampling.total_remaining:
        yield suggest_nothing
        return
    with Sampler(
        context.settings, context.check, sampling.space, sampling.sampler, request.spec.seed
    ) as sampler:
        yield sampler.suggest


@contextmanager
def log_run(
    db: Database,
    meter: CostMeter,
    request: FitRequest,
    interrupted: InterruptedRun | None,
    on_logged: OnLogged,
) -> Iterator[None]:
    """Log a run, and its end after an error.

    A run whose id was reported stays in the log, though nothing may have been trained.
    """
    context = meter.context
    log = meter.log
    try:
        is_shown = context.is_preparing  # and stays so until it is in the log
        if not is_shown:
            context.show_run(log.run_id)
        if interrupted is None:
            log.begin(request, os.getpid())
        elif not log.resume(os.getpid()):  # nothing later would be logged
            raise hidden_run(log.run_id)
        if is_shown:
            context.show_run(log.run_id)
        db.info(messages.describe_start(log.run_id, request))
        if not request.is_quiet:  # nothing of a quiet run can be resumed
            db.call_limit.run_id = log.run_id
        on_logged(log.run_id)
        _make_state_tables(context, log, request, interrupted)
        yield
    except BaseException as error:
        stop_run(meter, error)
        check_role(context, log, error)
        if not (log.has_trained or interrupted or db.in_procedure or _is_cancellation(error)):
            with suppress(CerebroError):  # cerebro.vacuum_runs drops them later
                log.drop_empty_states()
        raise


def _make_state_tables(
    context: CallContext, log: RunLog, request: FitRequest, interrupted: InterruptedRun | None
) -> None:
    """Create the state tables of configurations without visits."""
    histories: Mapping[int, ConfigHistory] = {}
    usable: Collection[str] = ()
    if interrupted:
        histories = interrupted.histories
        usable = interrupted_run.read_usable_tables(
            context.control, log.run_id, histories, count_state_tables(request)
        )
    unvisited = [
        config.mst_key
        for config in request.configs
        if not histories.get(config.mst_key, ConfigHistory()).visits
    ]
    log.make_state_tables(request, unvisited, usable)


def check_role(context: CallContext, log: RunLog, error: BaseException) -> None:
    """Check if an error was caused by a change of the role: a log belongs to the role's name.

    Raises:
        ObjectNotReady: the log belongs to another role now.
    """
    is_refused = getattr(error, "sqlstate", None) == InsufficientPrivilege.sqlstate
    if not (is_refused or isinstance(error, CerebroError)):
        return
    if isinstance(error, (ConnectionFailure, QueryCanceled)) or log.is_owned():
        return
    raise ObjectNotReady(
        f"run {log.run_id} is interrupted: role {context.role!r}, to which it belongs, was "
        "renamed or dropped, or has lost its privileges",
        detail=str(error),
        hint="An administrator can give it to another role, by the column owner of "
        "cerebro.run_log, which then can resume or drop it.",
    ) from error


@contextmanager
def log_completion_errors(
    db: Database, session_data: dict[str, Any], run_id: int
) -> Iterator[None]:
    """Log an error in the last step of a run, after its training, as the end of the run.

    A new session logs it, because the error may come from the other sessions.
    """
    try:
        yield
    except BaseException as error:
        if db.in_procedure:
            db.rollback()  # the transaction may have changed the row of the run
        with suppress(*OPEN_ERRORS):
            context = CallContext(db, session_data, settings.read(db), is_local=False)
            try:
                _log_end(context, run_id, error)
            finally:
                context.close(keep=False)
        raise


def _log_end(context: CallContext, run_id: int, error: BaseException) -> None:
    """Log the end of a run by an error, unless its end is logged already."""
    log = RunLog(context.control, run_id)
    context.control.ignore_cancels()
    with suppress(CerebroError):  # the log may be locked; the caller receives the first error
        _log_error(log, error, Cost())
    check_role(context, log, error)


def check_segments(context: CallContext, log: RunLog, request: FitRequest) -> None:
    """Check that the transaction of a completed run is not lost.

    Another statement in a lost transaction could stop the whole server.

    Raises:
        SegmentLost: the server has lost a segment.
    """
    if not context.segment_lost:
        return
    message = (
        f"run {log.run_id} is completed, but {context.platform.name} lost a segment meanwhile, and "
        "this transaction with it"
    )
    log.write_missing_outputs(message)
    name = request.spec.arguments.model_output_table
    raise SegmentLost(message, hint=f"SELECT cerebro.write_outputs({log.run_id}, '{name}');")


def reserve_run_id(db: Database, context: CallContext) -> int:
    """Return the id of a new run, whose lock this transaction holds."""
    while True:  # an id is skipped if its lock or the name of a table is taken
        run_id, is_taken = context.control.run(sql("run.reserve"))[0]
        if not is_taken and db.lock("mark_alive", run_id):
            return int(run_id)


def stop_run(meter: CostMeter, error: BaseException) -> None:
    """Stop the workers of a run, and log its early end.

    If the session or the server is being terminated, nothing is logged: the run is interrupted.
    """
    with suppress(CerebroError):  # without a control session, the run is shown as interrupted
        meter.abandon()
        meter.context.stop_workers()
        if not isinstance(error, ServerGone):
            _log_error(meter.log, error, meter.take_unlogged_cost())
        meter.charge_quota()


def _log_error(log: RunLog, error: BaseException, cost: Cost) -> None:
    """Log the end of a run by an error."""
    status = "cancelled" if _is_cancellation(error) else "failed"
    hint = getattr(error, "hint", None)
    log.stop(status, str(error) or "the statement was cancelled", hint, cost)


def _is_cancellation(error: BaseException) -> bool:
    if isinstance(error, KeyboardInterrupt):  # some servers cancel statements this way
        return True
    return getattr(error, "sqlstate", None) == QueryCanceled.sqlstate


def make_run_context(db: Database, context: CallContext, request: FitRequest) -> RunContext:
    """Return the callbacks of a run that belongs to a call."""
    run_context = RunContext(
        check=context.check,
        report_epoch=lambda epoch, seconds, evaluations, losses: db.info(
            messages.describe_epoch(epoch, seconds, evaluations, losses, request)
        ),
        report_failure=lambda mst_key, reason: db.info(f"mst_key={mst_key} failed: {reason}"),
        notify=db.notice,
        enter_phase=db.status.enter,
        exclude_wait=db.status.exclude,
        describe_time=db.status.describe_time,
        reopen=context.reopen,
        report_decisions=lambda rows, _: db.info(messages.describe_decisions(rows)),
    )
    if request.spec.train is not None or request.is_quiet:
        return replace(run_context, report_epoch=ignore, report_decisions=ignore)
    if request.spec.is_automl:
        automl = AutomlMessages(db.info, request)
        return replace(run_context, report_decisions=automl.report_decisions)
    return run_context


def ignore(*_: object) -> None:
    """Report nothing: nobody reads hundreds of epochs, which `cerebro.progress` shows."""
