"""The results of a run of `cerebro.train`: its best configurations, and their networks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.operations.train.holdout_predictions import Network
from cerebro_plpy.operations.train_arguments import FINAL_METRICS
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
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

    def read_best(self, states: Mapping[int, StoredState]) -> list[RunResult]:
        """Return the configurations over all rows that have a state, the best first."""
        values = (self.run.run_id, list(states))
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
        recipe = Recipe.from_json(self.train_spec.recipe)
        return Network.from_config(config, recipe, self.train_spec.classes, key, result.state)


def read_leaderboard(
    db: Database, run_id: int, templates: Sequence[Template], table: RawTable
) -> list[Row]:
    """Return the configurations of a run, the best first, with their unusual parameters.

    Args:
        templates: those that the run tries.
        table: its rows and its target decide which values are usual.
    """
    usual = {
        template.name: template.params(table.target.head, table.rows, {}) for template in templates
    }
    rows = db.peek(sql("version.leaderboard"), run_id)
    for row in rows:
        if row["template"] in usual:
            params = select_unusual(json.loads(row["params"]), usual[row["template"]])
            row["params"] = json.dumps(params)
    return rows


def select_unusual(params: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters whose values are not the usual ones.

    >>> select_unusual({"lr": 0.1, "depth": 3, "own": 1}, {"lr": 0.04, "depth": 3})
    {'lr': 0.1, 'own': 1}
    """
    return {
        name: value for name, value in params.items() if name not in usual or value != usual[name]
    }
