"""What a run of `cerebro.train` has come to: its best configurations, and their networks."""

from __future__ import annotations

from collections.abc import Mapping

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.operations.train.holdout_predictions import Network
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.tables.models.model_registry import RunResult
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

OTHERWISE = ("auc",)
"""What Keras computes in another way: of the probabilities of all classes at once."""


def has_value(result: RunResult, metric: str) -> bool:
    """Whether the log has the metric that versions are compared by: the budget may end a run before
    it is evaluated.

    >>> [has_value(RunResult(1, 1, value, None, StoredState("t", None)), "accuracy")
    ...  for value in (0.5, None)]
    [True, False]
    """
    return result.value is not None and metric not in OTHERWISE


def read_states(db: Database, run: LoggedRun) -> dict[int, StoredState]:
    """The states that a run has, by mst_key."""
    rows = logged_run.read_configs(db, run.run_id)
    return {row["mst_key"]: state for row in rows if (state := logged_run.stored_state(row))}


def read_best_configs(
    workplace: CallContext, run: LoggedRun, states: Mapping[int, StoredState], most: int
) -> list[RunResult]:
    """So many of the best configurations of a run that have a state, of those over all rows."""
    rows = workplace.control.run(sql("version.best"), (run.run_id, list(states), most))
    return [RunResult(run.run_id, mst_key, value, None, states[mst_key]) for mst_key, value in rows]


def read_best_by_group(
    workplace: CallContext, run: LoggedRun, states: Mapping[int, StoredState]
) -> dict[str, RunResult]:
    """The best configuration of each group of a run of which one has a state, by the value of the
    group.
    """
    rows = workplace.control.run(sql("version.best_of_groups"), (run.run_id, list(states)))
    return {
        group: RunResult(run.run_id, mst_key, value, None, states[mst_key])
        for group, mst_key, value in rows
    }


def make_network(run: LoggedRun, result: RunResult, logged: Row) -> Network:
    """The network that a configuration has come to, which is logged so."""
    train = run.spec.train
    assert train is not None
    state = StateSource(
        "weights_of_chunks", f"{run.run_id}/{result.mst_key}/best", 0, stored=result.state
    )
    recipe, texts = (
        Recipe.from_json(train.recipe),
        (logged["architecture"], logged["compile_params"]),
    )
    return Network(recipe, train.classes, *texts, state, logged["backend"])
