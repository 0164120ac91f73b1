"""Configurations that join a run while it goes on: checked as those of its call were, logged, and trained like them.

One may be the clone of another with other parameters. A warm clone begins from a copy of the state that the other one
had stored by then; that table stays as long as the states of the run do, for whoever resumes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.custom_functions import functions_in_log
from cerebro_plpy.configs.fit_params import parse_fit_params
from cerebro_plpy.configs.optimizers import goes_on_with
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.hopping import schedule
from cerebro_plpy.hopping.residence import Residence
from cerebro_plpy.platform.state_tables import StoredState, start_table
from cerebro_plpy.run.log import Act, Origin, RunLog
from cerebro_plpy.run.positions import Positions
from cerebro_plpy.run.request import FitRequest, WarmState
from cerebro_plpy.run.search import Search
from cerebro_plpy.run.training import ConfigTraining, Past
from cerebro_plpy.run.verdicts import check_monitor
from cerebro_plpy.tables.compatibility import check_configs


class Recruits:
    """Those of one run. Its request has mappings that can grow: frameworks, and states to begin from."""

    def __init__(
        self,
        request: FitRequest,
        log: RunLog,
        positions: Positions,
        training: dict[int, ConfigTraining],
        residence: Residence | None,
    ) -> None:
        self._request, self._log = request, log
        self._positions, self._training, self._residence = positions, training, residence
        self._backends: dict[int, str] = dict(request.backends)
        self._warm: dict[int, WarmState] = dict(request.warm_states)

    def clone(self, act: Act, search: Search) -> None:
        """Let the clone of a configuration join, with what is said to be other of it."""
        parent = None if act.mst_key is None else self._training.get(act.mst_key)
        if parent is None:
            raise InvalidParameter(f"the run has no configuration {act.mst_key} that could be cloned")
        stored = parent.stored if act.change.get("warm") else None
        if act.change.get("warm") and stored is None:
            raise InvalidParameter(f"mst_key {act.mst_key} has no state yet that a clone could begin from; see warm")
        origin = Origin("clone", act.mst_key, act.mst_key if stored else None)
        row = {**act.change, "model_id": parent.config.model_id}
        self._join(act, search, [row], origin, (parent.config, stored) if stored else None)

    def add(self, act: Act, search: Search) -> None:
        """Let configurations join that somebody has read from a model selection table."""
        self._join(act, search, act.change["configs"], Origin("act"), None)

    def _join(
        self,
        act: Act,
        search: Search,
        rows: Sequence[Mapping[str, Any]],
        origin: Origin,
        parent: tuple[Config, StoredState] | None,
    ) -> None:
        first = self._log.next_key()
        configs = self._checked([self._config(first + number, row) for number, row in enumerate(rows)])
        frameworks = {known.config.model_id: known.framework for known in self._training.values()}
        for config in configs:
            self._backends[config.mst_key] = frameworks[config.model_id]
            if parent:
                self._warm[config.mst_key] = self._copy(config, *parent)
        request = self._request.with_configs(configs, self._backends, self._warm)
        self._log.make_state_tables(request, [config.mst_key for config in configs])
        for config in configs:
            training = ConfigTraining.after(Past(), request, config, self._log.run_id)
            self._training[config.mst_key] = training
            self._positions.progress[config.mst_key] = schedule.start(self._positions.plan, config.mst_key)
            if self._residence:
                self._residence.admit(config.mst_key, training.compilation)
        search.admit(act, configs, self._log.configs_joined(request, configs, origin))

    def _config(self, mst_key: int, row: Mapping[str, Any]) -> Config:
        spec = self._request.spec
        functions = functions_in_log(spec.object_table, dict(spec.functions))
        texts = str(row["compile_params"]), str(row["fit_params"])
        parsed = parse_compile_params(texts[0], functions), parse_fit_params(texts[1])
        return Config(mst_key, int(row["model_id"]), *texts, *parsed)

    def _checked(self, configs: Sequence[Config]) -> tuple[Config, ...]:
        request = self._request
        known = {training.config.model_id for training in self._training.values()}
        unknown = sorted({config.model_id for config in configs} - known)
        if unknown:
            raise InvalidParameter(f"models {unknown} are not among those that the run began with")
        if any(config.fit.callbacks.board for config in configs):
            raise InvalidParameter("TensorBoard cannot be begun in the midst of a run")
        models = {config.model_id: request.architectures[config.model_id] for config in configs}
        source, table = request.source, request.architecture_table
        checked = check_configs(configs, models, source, table or Relation("", "", "", 0, ""))
        sides = {"training": request.spec.training_metrics, "validation": request.validation}
        datasets = [name for name, there in sides.items() if there]
        for config in checked:
            check_monitor(config, datasets)
        return checked

    def _copy(self, config: Config, parent: Config, stored: StoredState) -> WarmState:
        table = start_table(self._log.run_id, config.mst_key)
        self._log.copy_state(stored, table)
        return self._log.copied(table, goes_on_with(parent.compile.optimizer, config.compile.optimizer))
