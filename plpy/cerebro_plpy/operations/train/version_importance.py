"""The importances of columns for a version that was just made, with what its run has left of its
budget.

A worker computes them, in the trainer that it has. The version is there already, and stays whatever
becomes of them.
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

LATE_SECONDS = 1.0
"""Who computes looks at the clock; later than that it is stopped."""


class NewVersion(NamedTuple):
    """The version, and the framework that it predicts with."""

    model: str
    version: int
    backend: str


def add_importance(
    workplace: CallContext, latest: NewVersion, ends: float, piece: Callable[[], bool]
) -> None:
    """Log the importances that can be computed until then, by time.monotonic(); `piece` is as of a
    Dispatcher.
    """
    if time.monotonic() >= ends:
        return
    try:
        error = _computed(workplace, latest, ends, piece)
    except QueryCanceled:
        raise
    except CerebroError as lost:
        error = lost
    if error is not None:
        workplace.db.info(
            f"version {latest.version} has no importances of columns: {error.message}"
        )


def _computed(
    workplace: CallContext, latest: NewVersion, ends: float, piece: Callable[[], bool]
) -> CerebroError | None:
    crew = open_scoring_workers(workplace, latest.backend, False, (0,))
    dispatcher: Dispatcher[None] = Dispatcher(workplace.check, piece)
    dispatcher.begin(0, crew.workers[0].session, _steps(crew, crew.workers[0], latest, ends))
    ended = dispatcher.wait(ends + LATE_SECONDS)
    if not ended:
        dispatcher.cancel((0,), QueryCanceled("the budget was over"))
        ended = dispatcher.wait()
    return ended[0].error


def _steps(crew: WorkerSet, worker: Worker, latest: NewVersion, ends: float) -> Steps[None]:
    yield from crew.visits.start(worker)
    worker.memory.forget()
    key = latest.model, latest.version
    found = yield Statement(
        sql("understanding.version_importance"), (*key, ends - time.monotonic())
    )
    yield Statement(sql("understanding.add_importance"), (*found[0], *key))
