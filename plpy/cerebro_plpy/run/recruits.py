"""Configurations that join a run while it goes on: checked as those of its call were, logged, and trained like them.

Acts add them, or a search that draws them of a space. One may be the clone of another with other parameters. A warm
clone begins from a copy of the state that the other one had stored by then; that table stays as long as the states of
the run do, for whoever resumes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.custom_functions import functions_in_log
from cerebro_plpy.configs.fit_params import parse_fit_params
from cerebro_plpy.configs.frameworks import BACKENDS
from cerebro_plpy.configs.per_output import LOSS
from cerebro_plpy.configs.points import Point
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.hopping import schedule
from cerebro_plpy.hopping.rules import Trial
from cerebro_plpy.platform.state_tables import StoredState, start_table
from cerebro_plpy.run.log import Act, Joined, Origin
from cerebro_plpy.run.request import WarmState
from cerebro_plpy.run.roster import Roster
from cerebro_plpy.run.sampler import told
from cerebro_plpy.run.tasks import Surroundings
from cerebro_plpy.run.training import ConfigTraining, Past
from cerebro_plpy.run.verdicts import check_monitor
from cerebro_plpy.run.warm_states import clone_source
from cerebro_plpy.tables.architectures import Made, StoredModel
from cerebro_plpy.tables.compatibility import check_configs


class Recruits:
    """Those of one run. Its request has mappings that can grow: frameworks, and states to begin from."""

    def __init__(self, roster: Roster, around: Surroundings) -> None:
        self._roster, self._around = roster, around
        self._request, self._log, self._training = roster.request, roster.log, roster.training
        self._backends: dict[int, str] = dict(roster.request.backends)
        self._warm: dict[int, WarmState] = dict(roster.request.warm_states)
        drawing = roster.request.search.drawing if roster.request.search else None
        points = {**drawing.known, **drawing.points} if drawing else {}
        self._points: dict[int, Point] = {key: point for key, point in points.items() if point is not None}
        self._refused: list[Point] = []

    def clone(self, act: Act) -> tuple[Sequence[Config], Joined]:
        """Let the clone of a configuration join, with what is said to be other of it."""
        parent = None if act.mst_key is None else self._training.get(act.mst_key)
        if parent is None:
            raise InvalidParameter(f"the run has no configuration {act.mst_key} that could be cloned")
        stored = parent.stored if act.change.get("warm") else None
        if act.change.get("warm") and stored is None:
            raise InvalidParameter(f"mst_key {act.mst_key} has no state yet that a clone could begin from; see warm")
        origin = Origin("clone", act.mst_key, act.mst_key if stored else None)
        row = {**act.change, "model_id": parent.config.model_id}
        return self._join(self._new([row]), origin, (parent.config, stored) if stored else None)

    def add(self, act: Act) -> tuple[Sequence[Config], Joined]:
        """Let configurations join that somebody has read from a model selection table, or drawn of a space, perhaps of
        one around another configuration."""
        return self._join(self._new(act.change["configs"]), Origin("act", act.mst_key), None)

    def draw(self, count: int, trials: Mapping[int, Trial]) -> tuple[Sequence[Config], Joined]:
        """Let so many configurations join that a sampler suggests, or fewer where it has no more."""
        search = self._request.search
        assert search is not None and search.drawing is not None
        epochs = self._request.spec.epochs
        known = [told(point, trials[key], epochs) for key, point in sorted(self._points.items())]
        failed = [told(point, Trial(failed=True), epochs) for point in self._refused]
        points = self._around.suggest([*known, *failed], count)
        if len(points) < count:
            self._around.note(f"{len(self._training) + len(points)} configurations are tried: no others are suggested")
        first, configs, architectures = self._log.next_key(), list[Config](), dict[int, StoredModel]()
        for point in points:
            try:
                made = self._made({first + len(configs): search.drawing.space.row(point)})
            except (InvalidParameter, DatatypeMismatch):
                self._refused.append(point)
            else:
                configs += made.configs
                architectures |= made.architectures
                self._points[configs[-1].mst_key] = point
        drawn = {config.mst_key: self._points[config.mst_key] for config in configs}
        return self._join(Made(tuple(configs), architectures), Origin("search", points=drawn), None)

    def _new(self, rows: Sequence[Mapping[str, Any]]) -> Made:
        return self._made(dict(enumerate(rows, self._log.next_key())))

    def _made(self, rows: Mapping[int, Mapping[str, Any]]) -> Made:
        if self._request.maker:
            return self._request.maker(rows)
        return Made(self._checked([self._config(key, row) for key, row in rows.items()]), {})

    def _join(
        self, joined: Made, origin: Origin, parent: tuple[Config, StoredState] | None
    ) -> tuple[Sequence[Config], Joined]:
        configs, positions, residence = joined.configs, self._roster.positions, self._roster.residence
        for config in configs:
            self._backends[config.mst_key] = self._framework(config)
            if parent:
                self._warm[config.mst_key] = self._copy(config, *parent)
        request = self._request.with_configs(joined, self._backends, self._warm)
        self._log.make_state_tables(request, [config.mst_key for config in configs])
        for config in configs:
            training = ConfigTraining.after(Past(), request, config, self._log.run_id)
            self._training[config.mst_key] = training
            positions.progress[config.mst_key] = schedule.start(positions.plan, config.mst_key)
            if residence:
                residence.admit(config.mst_key, training.compilation)
        return configs, self._log.configs_joined(request, configs, origin)

    def _framework(self, config: Config) -> str:
        """What others of its model are trained with, or of its template."""
        known = {(each.config.template or each.config.model_id): each.framework for each in self._training.values()}
        return known.get(config.template or config.model_id) or next(iter(known.values()), BACKENDS[0])

    def _config(self, mst_key: int, row: Mapping[str, Any]) -> Config:
        spec = self._request.spec
        functions = functions_in_log(spec.object_table, dict(spec.functions))
        texts = str(row["compile_params"]), str(row["fit_params"])
        parsed = parse_compile_params(texts[0], functions), parse_fit_params(texts[1])
        return Config(mst_key, int(row["model_id"]), *texts, *parsed)

    def _checked(self, configs: Sequence[Config]) -> tuple[Config, ...]:
        request = self._request
        unknown = sorted({config.model_id for config in configs} - request.architectures.keys())
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
            measured = [each.logged for each in (*config.metrics, LOSS)]
            if request.spec.ranking.metric not in measured:
                raise InvalidParameter(
                    f"{config.compile_text:.120} has no metric {request.spec.ranking.metric}, by which the run compares"
                )
        return checked

    def _copy(self, config: Config, parent: Config, stored: StoredState) -> WarmState:
        table = start_table(self._log.run_id, config.mst_key)
        self._log.copy_state(stored, table)
        return self._log.copied(
            table, clone_source(self._request.spec, parent.compile.optimizer, config.compile.optimizer)
        )
