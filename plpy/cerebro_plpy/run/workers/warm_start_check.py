"""The check that states fit the configurations that start from them, before anything is trained.

Only trainers can build a model, so only they can check whether an architecture takes the weights of
another one.
"""

from __future__ import annotations

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.optimizers import OptimizerSpec, choose_state_source
from cerebro_plpy.database.sessions.async_dispatcher import drive
from cerebro_plpy.errors import ConfigFailure, DatatypeMismatch
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import Job
from cerebro_plpy.run.request import visit_jobs
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.workers import WorkerSet


def check_warm_states(context: CallContext, request: FitRequest, worker_set: WorkerSet) -> None:
    """Check the states of a request; a notice names configurations whose optimizer starts anew.

    Raises:
        DatatypeMismatch: weights do not fit.
    """
    for config in request.configs:
        warm = request.warm_states.get(config.mst_key)
        if warm is None or (warm.source != "warm" and not warm.has_other_architecture):
            continue
        fits_optimizer = _restore(request, config, worker_set)
        if warm.source == "warm" and not fits_optimizer:
            context.db.notice(
                f"mst_key={config.mst_key}: the optimizer begins anew, for its variables, or the "
                "weights that it trains, are not those of before, or do not go over to another "
                "backend."
            )


def choose_clone_source(
    parent_optimizer: OptimizerSpec, optimizer: OptimizerSpec, *, anew: bool
) -> str:
    """Return which part of another configuration's state a clone continues from.

    Args:
        parent_optimizer: optimizer of the other configuration.
        anew: the clone has all of its epochs before it. Learning rates that are scheduled over all
            epochs then start anew, and the optimizer with them.
    """
    if anew:
        return "weights_of_chunks"
    return choose_state_source(parent_optimizer, optimizer)


def _restore(request: FitRequest, config: Config, worker_set: WorkerSet) -> bool:
    """Let a trainer restore the state; return whether it fits the optimizer."""
    worker = worker_set.list_with(request.backends[config.mst_key])[0]
    state = visit_jobs.make_initial_state(request, config, 0)
    job = Job("restore", visit_jobs.describe_program(request, config), state.key)
    try:
        return drive(worker.session, worker_set.visits.check_state(worker, state, job))
    except ConfigFailure as error:
        hint = f"{error.hint or ''} Or leave warm_start out, and name a table that does not exist."
        raise DatatypeMismatch(
            f"mst_key={config.mst_key} cannot go on from the weights of the model before: "
            f"{error.message}",
            hint=hint.strip(),
        ) from error
