"""Importances of the columns of a new version, computed in the remaining time of its run.

A worker computes them in its trainer. The version exists already, whether this succeeds or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Dispatcher, Statement, Steps
from cerebro_plpy.errors import CerebroError, QueryCanceled
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.run.workers.workers import WorkerSet, open_scoring_workers

MAX_DELAY_SECONDS = 1.0
"""The computation ends in time by itself; after this delay it is cancelled."""


class NewVersion(NamedTuple):
    """A version that was just added."""

    model: str
    version: int
    backend: str
    refit_runs: tuple[int, ...] = ()  # the run that has trained its members again, if one has


def add_importance(
    context: CallContext, version: NewVersion, deadline: float, extra_work: Callable[[], bool]
) -> None:
    """Log the importances that can be computed until a deadline.

    Args:
        deadline: by time.monotonic().
        extra_work: see `Dispatcher`.
    """
    if time.monotonic() >= deadline:
        return
    try:
        error = _compute(context, version, deadline, extra_work)
    except QueryCanceled:
        raise
    except CerebroError as raised:
        error = raised
    if error is not None:
        context.db.info(f"version {version.version} has no importances of columns: {error.message}")


def _compute(
    context: CallContext, version: NewVersion, deadline: float, extra_work: Callable[[], bool]
) -> CerebroError | None:
    """Compute and log the importances in a worker; return the error of the worker, if any."""
    workers = open_scoring_workers(context, version.backend, False, (0,))
    worker = workers.workers[0]
    dispatcher: Dispatcher[None] = Dispatcher(context.check, extra_work)
    dispatcher.begin(0, worker.session, _run_steps(workers, worker, version, deadline))
    outcomes = dispatcher.wait(deadline + MAX_DELAY_SECONDS)
    if not outcomes:
        dispatcher.cancel((0,), QueryCanceled("the budget was over"))
        outcomes = dispatcher.wait()
    return outcomes[0].error


def _run_steps(
    workers: WorkerSet, worker: Worker, version: NewVersion, deadline: float
) -> Steps[None]:
    yield from workers.visits.start(worker)
    worker.memory.forget()
    key = (version.model, version.version)
    seconds = deadline - time.monotonic()
    rows = yield Statement(sql("understanding.version_importance"), (*key, seconds))
    yield Statement(sql("understanding.add_importance"), (*rows[0], *key))
