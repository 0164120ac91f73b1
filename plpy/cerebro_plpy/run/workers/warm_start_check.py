"""Whether the states that configurations go on from fit: asked of trainers, before anything is
trained.

Only trainers can build a model, so only they know whether another architecture takes the weights of
an earlier one.
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


def check_warm_states(workplace: CallContext, request: FitRequest, crew: WorkerSet) -> None:
    """Raises DatatypeMismatch where weights do not fit; a NOTICE says where an optimizer begins
    anew.
    """
    for config in request.configs:
        warm = request.warm_states.get(config.mst_key)
        if not warm or not (warm.source == "warm" or warm.has_other_architecture):
            continue
        whole = _restore(request, config, crew)
        if warm.source == "warm" and not whole:
            workplace.db.notice(
                f"mst_key={config.mst_key}: the optimizer begins anew, for its variables, or the "
                "weights that it trains, are not those of before, or do not go over to another "
                "backend."
            )


def choose_clone_source(before: OptimizerSpec, optimizer: OptimizerSpec, *, anew: bool) -> str:
    """What of the state of another configuration a clone goes on with.

    Where learning rates rise and fall over all that is planned they begin `anew`, and the optimizer
    with them, in a clone that has all of its epochs before it.
    """
    return "weights_of_chunks" if anew else choose_state_source(before, optimizer)


def _restore(request: FitRequest, config: Config, crew: WorkerSet) -> bool:
    worker = next(
        each for each in crew.workers if each.framework == request.backends[config.mst_key]
    )
    state = visit_jobs.make_initial_state(request, config, 0)
    job = Job("restore", visit_jobs.describe_program(request, config), state.key)
    try:
        return drive(worker.session, crew.visits.check_state(worker, state, job))
    except ConfigFailure as error:
        raise DatatypeMismatch(
            f"mst_key={config.mst_key} cannot go on from the weights of the model before: "
            f"{error.message}",
            hint=(
                f"{error.hint or ''} Or leave warm_start out, and name a table that does not exist."
            ).strip(),
        ) from error
