"""The results of a run of `cerebro.train`: its best configurations, and their networks."""

from __future__ import annotations

from collections.abc import Mapping

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.operations.train.holdout_predictions import Network
from cerebro_plpy.operations.train_arguments import FINAL_METRICS
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.models.model_registry import RunResult
from cerebro_plpy.tables.outputs import logged_run
from cerebro_plpy.tables.outputs.logged_run import LoggedRun


def has_value(result: RunResult, metric: str) -> bool:
    """Return whether a value from the log is of the metric that versions are compared by.

    The budget may end a run before it is evaluated.

    >>> state = StoredState("t", None)
    >>> [has_value(RunResult(1, 1, value, None, state), "accuracy") for value in (0.5, None)]
    [True, False]
    """
    return result.value is not None and metric not in FINAL_METRICS


@dataclass(frozen=True)
class RunResults:
    """The results of a run that has ended."""

    db: Database
    context: CallContext
    run: LoggedRun

    @property
    def train_spec(self) -> TrainSpec:
        """The request of `cerebro.train`."""
        assert self.run.spec.train is not None
        return self.run.spec.train

    def read_states(self) -> dict[int, StoredState]:
        """Return the states of the run, by mst_key."""
        rows = logged_run.read_configs(self.db, self.run.run_id)
        return {row["mst_key"]: state for row in rows if (state := logged_run.stored_state(row))}

    def read_configs(self) -> dict[int, Row]:
        """Return the logged configurations, by mst_key."""
        rows = self.db.peek(sql("run.logged_configs"), self.run.run_id)
        return {row["mst_key"]: row for row in rows}

    def read_best(self, states: Mapping[int, StoredState], count: int) -> list[RunResult]:
        """Return the best configurations over all rows, of those with a state."""
        values = (self.run.run_id, list(states), count)
        rows = self.context.control.run(sql("version.best"), values)
        return [self._make_result(mst_key, value, states) for mst_key, value in rows]

    def read_best_by_group(self, states: Mapping[int, StoredState]) -> dict[str, list[RunResult]]:
        """Return the configurations of each group that have a state, the best first."""
        values = (self.run.run_id, list(states))
        results: dict[str, list[RunResult]] = {}
        for group, key, value in self.context.control.run(sql("version.best_of_groups"), values):
            results.setdefault(group, []).append(self._make_result(key, value, states))
        return results

    def _make_result(
        self, mst_key: int, value: float | None, states: Mapping[int, StoredState]
    ) -> RunResult:
        return RunResult(self.run.run_id, mst_key, value, None, states[mst_key])

    def make_network(self, result: RunResult, config: Row) -> Network:
        """Return the network of a logged configuration."""
        key = f"{self.run.run_id}/{result.mst_key}/best"
        return Network(
            recipe=Recipe.from_json(self.train_spec.recipe),
            classes=self.train_spec.classes,
            architecture=config["architecture"],
            compile_params=config["compile_params"],
            state=StateSource("weights_of_chunks", key, 0, stored=result.state),
            backend=config["backend"],
        )
