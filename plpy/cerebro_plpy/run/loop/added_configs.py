"""Configurations that join a run while it goes on: checked as those of its call were, logged, and
trained like them.

Acts add them, or a search that draws them of a space. One may be the clone of another with other
parameters. A warm clone begins from a copy of the state that the other one had stored by then; that
table stays as long as the states of the run do, for whoever resumes it. In a replay clones are
there from the beginning, and wait for that state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import read_logged_functions
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.frameworks import BACKENDS
from cerebro_plpy.configs.params.output_losses import LOSS
from cerebro_plpy.configs.search_space.sampler_space import Point, describe_config
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, InvalidText
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.run_log import Command, LogStatements, Origin
from cerebro_plpy.run.request.early_stopping import check_monitor
from cerebro_plpy.run.request.run_request import CloneStart, WarmState
from cerebro_plpy.run.request.visit_jobs import make_initial_state
from cerebro_plpy.run.state.config_state import ConfigTraining, Past
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.run.workers.sampler import add_prior_trials, describe_trial
from cerebro_plpy.run.workers.tasks import Surroundings
from cerebro_plpy.run.workers.warm_start_check import choose_clone_source
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.search.promotion_rules import Decision, Trial
from cerebro_plpy.tables.architectures import BuiltConfigs, StoredModel
from cerebro_plpy.tables.compatibility import check_configs

MOST_TRIES = 10
"""So often other parameters are drawn for a clone, where those before do not fit; then it has those
of its parent.
"""


class Recruits:
    """Those of one run. Its request has mappings that can grow: frameworks, and states to begin
    from.
    """

    def __init__(self, roster: Roster, around: Surroundings) -> None:
        self._roster, self._around = roster, around
        self._request, self._log, self._training = roster.request, roster.log, roster.training
        self._backends: dict[int, str] = dict(roster.request.backends)
        self._warm: dict[int, WarmState] = dict(roster.request.warm_states)
        self._drawing = drawing = roster.request.search.sampling if roster.request.search else None
        points = {**drawing.existing_points, **drawing.points} if drawing else {}
        self._points: dict[int, Point] = {
            key: point for key, point in points.items() if point is not None
        }
        self._refused: dict[str | None, list[Point]] = defaultdict(
            list
        )  # by the group for which it was suggested
        starts = roster.request.replay.clone_starts.items()
        self._awaited = {
            key: each for key, each in starts if key in self._training and key not in self._warm
        }
        for key in self._awaited:
            roster.positions.hold(key)

    def awaits(self, mst_key: int) -> bool:
        """Whether a configuration waits for the state that it is to begin from."""
        return mst_key in self._awaited

    @property
    def arriving(self) -> bool:
        """Whether a state that somebody waits for is still to be stored, though who left it has
        failed since.
        """
        alive = self._roster.positions.progress
        return any(start.parent not in alive for start in self._awaited.values())

    def begin_clones(self, parent: ConfigTraining) -> None:
        """Let those begin that wait for the state which a configuration has just stored."""
        for key in [
            key
            for key, start in self._awaited.items()
            if start == (parent.config.mst_key, parent.visits)
        ]:
            assert parent.stored is not None
            del self._awaited[key]
            clone = self._training[key]
            self._warm[key] = self._copy(clone.config, parent, anew=True)
            request = self._request.with_configs(BuiltConfigs((), {}), self._backends, self._warm)
            clone.state = make_initial_state(request, clone.config, self._log.run_id)
            self._roster.positions.let_go(key)

    def orphan(self) -> tuple[int, str] | None:
        """One that waited for a state which does not come any more, and why; it waits no more."""
        alive = self._roster.positions.progress
        gone = next((key for key, start in self._awaited.items() if not self._comes(start)), None)
        if gone is None:
            return None
        parent = self._awaited.pop(gone).parent
        reason = (
            f"mst_key={parent}, from whose state it was to begin, failed before it came to that"
        )
        return (gone, reason) if gone in alive else self.orphan()

    def _comes(self, start: CloneStart) -> bool:
        parent = self._training.get(start.parent)
        stored = parent is not None and parent.visits + parent.unstored >= start.visits
        return stored or start.parent in self._roster.positions.progress

    def clone(self, act: Command) -> tuple[Sequence[Config], LogStatements]:
        """Let the clone of a configuration join, with what is said to be other of it."""
        parent = None if act.mst_key is None else self._training.get(act.mst_key)
        if parent is None:
            raise InvalidParameter(
                f"the run has no configuration {act.mst_key} that could be cloned"
            )
        warm = bool(act.change.get("warm"))
        if warm and parent.stored is None:
            raise InvalidParameter(
                f"mst_key {act.mst_key} has no state yet that a clone could begin from; see warm"
            )
        origin = Origin("clone", act.mst_key, *((act.mst_key, parent.visits) if warm else ()))
        row = {**act.change, "model_id": parent.config.model_id}
        joined = self._join(self._asked([row], act.mst_key), origin, parent if warm else None)
        if (
            not warm
        ):  # else it owes what it comes to, to its parent's parameters as well: no value of a point
            self._locate(joined[0])
        return joined

    def add(self, act: Command) -> tuple[Sequence[Config], LogStatements]:
        """Let configurations join that somebody has read from a model selection table, or drawn of
        a space, perhaps of one around another configuration."""
        joined = self._join(
            self._asked(act.change["configs"], act.mst_key), Origin("act", act.mst_key), None
        )
        self._locate(joined[0])
        return joined

    def _locate(self, configs: Sequence[Config]) -> None:
        """The sampler is told of those that lie in its space, too."""
        if self._drawing:
            found = {
                config.mst_key: self._drawing.space.find_point(describe_config(config))
                for config in configs
            }
            self._points.update((key, point) for key, point in found.items() if point is not None)

    def draw(
        self, count: int, trials: Mapping[int, Trial], group: str | None = None
    ) -> tuple[Sequence[Config], LogStatements]:
        """Let so many configurations join that a sampler suggests, or fewer where it has no more:
        of a group, where these are the trials of one."""
        drawing, epochs = self._drawing, self._request.spec.epochs
        assert drawing is not None
        known = [
            describe_trial(point, trials[key], epochs)
            for key, point in sorted(self._points.items())
            if key in trials
        ]
        failed = [
            describe_trial(point, Trial(failed=True), epochs) for point in self._refused[group]
        ]
        points = self._around.suggest(
            add_prior_trials(drawing.prior_trials, [*known, *failed]), count
        )
        if len(points) < count:
            apart = "" if group is None else f" for group {group}"
            self._around.note(
                f"{len(trials) + len(points)} configurations are tried{apart}: no others are "
                "suggested"
            )
        first, configs, architectures = (
            self._log.read_next_key(),
            list[Config](),
            dict[int, StoredModel](),
        )
        for point in points:
            try:
                made = self._made(
                    {first + len(configs): {**drawing.space.make_row(point), "group": group}}
                )
            except (InvalidParameter, DatatypeMismatch):
                self._refused[group].append(point)
            else:
                configs += made.configs
                architectures |= made.architectures
                self._points[configs[-1].mst_key] = point
        drawn = {config.mst_key: self._points[config.mst_key] for config in configs}
        return self._join(
            BuiltConfigs(tuple(configs), architectures), Origin("search", points=drawn), None
        )

    def descend(self, decisions: Sequence[Decision]) -> tuple[Sequence[Config], LogStatements]:
        """Let clones join that a rule has named, with parameters near those of their parents."""
        configs, texts, values = list[Config](), list[str](), list[object]()
        for each in decisions:
            assert each.parent is not None
            parent = self._training[each.parent]
            origin = Origin("clone", each.parent, each.parent, parent.visits)
            found, joined = self._join(
                self._explored(each.mst_key, parent.config), origin, parent, anew=False
            )
            configs += found
            texts += joined.texts
            values += joined.values
        return configs, LogStatements(texts, values)

    def _explored(self, mst_key: int, parent: Config) -> BuiltConfigs:
        assert self._drawing is not None
        random = Random(f"{self._request.spec.seed}/{mst_key}")
        for _ in range(MOST_TRIES):
            with suppress(InvalidParameter, InvalidText, DatatypeMismatch):
                return self._made({mst_key: self._drawing.space.perturb(parent, random)})
        return BuiltConfigs((replace(parent, mst_key=mst_key),), {})

    def _asked(self, rows: Sequence[Mapping[str, Any]], mst_key: int | None = None) -> BuiltConfigs:
        """What these rows of an act come to; of the group of a configuration that they are like, if
        it is of one.
        """
        like = None if mst_key is None else self._training.get(mst_key)
        group = like.config.group if like else None
        keyed = enumerate(rows, self._log.read_next_key())
        made = self._made({key: {**row, "group": group} for key, row in keyed})
        if self._around.places:
            self._around.places.reserve_configs(len(made.configs))
        return made

    def _made(self, rows: Mapping[int, Mapping[str, Any]]) -> BuiltConfigs:
        if self._request.build_configs:
            return self._request.build_configs(rows)
        return BuiltConfigs(
            self._checked([self._config(key, row) for key, row in rows.items()]), {}
        )

    def _join(
        self,
        joined: BuiltConfigs,
        origin: Origin,
        parent: ConfigTraining | None,
        *,
        anew: bool = True,
    ) -> tuple[Sequence[Config], LogStatements]:
        configs, positions, residence = (
            joined.configs,
            self._roster.positions,
            self._roster.positions.residence,
        )
        for config in configs:
            self._backends[config.mst_key] = self._framework(config)
            if parent:
                self._warm[config.mst_key] = self._copy(config, parent, anew=anew)
        request = self._request.with_configs(joined, self._backends, self._warm)
        positions.plan = replace(
            positions.plan,
            segment_subsets={**positions.plan.segment_subsets, **request.segment_subsets},
        )
        self._log.make_state_tables(request, [config.mst_key for config in configs])
        for config in configs:
            training = ConfigTraining.after(Past(), request, config, self._log.run_id)
            self._training[config.mst_key] = training
            positions.progress[config.mst_key] = schedule.start(positions.plan, config.mst_key)
            if residence:
                residence.add_config(config.mst_key, training.compilation)
        return configs, self._log.build_config_statements(request, configs, origin)

    def _framework(self, config: Config) -> str:
        """What others of its model are trained with, or of its template."""
        known = {
            (each.config.template or each.config.model_id): each.framework
            for each in self._training.values()
        }
        return known.get(config.template or config.model_id) or next(
            iter(known.values()), BACKENDS[0]
        )

    def _config(self, mst_key: int, row: Mapping[str, Any]) -> Config:
        spec = self._request.spec
        functions = read_logged_functions(spec.object_table, dict(spec.functions))
        texts = str(row["compile_params"]), str(row["fit_params"])
        parsed = parse_compile_params(texts[0], functions), parse_fit_params(texts[1])
        return Config(mst_key, int(row["model_id"]), *texts, *parsed)

    def _checked(self, configs: Sequence[Config]) -> tuple[Config, ...]:
        request = self._request
        unknown = sorted({config.model_id for config in configs} - request.architectures.keys())
        if unknown:
            raise InvalidParameter(f"models {unknown} are not among those that the run began with")
        if any(config.fit.callbacks.tensorboard for config in configs):
            raise InvalidParameter("TensorBoard cannot be begun in the midst of a run")
        models = {config.model_id: request.architectures[config.model_id] for config in configs}
        source, table = request.source, request.architecture_table
        table = table or Relation("", "", "", 0, "")
        checked = check_configs(configs, models, source, table, self._around.check)
        sides = {"training": request.spec.training_metrics, "validation": request.validation}
        datasets = [name for name, there in sides.items() if there]
        for config in checked:
            check_monitor(config, datasets, request.patience)
            measured = [each.logged_name for each in (*config.metrics, LOSS)]
            if request.spec.ranking.metric not in measured:
                raise InvalidParameter(
                    f"{config.compile_text:.120} has no metric {request.spec.ranking.metric}, by "
                    "which the run compares"
                )
        return checked

    def _copy(self, config: Config, parent: ConfigTraining, *, anew: bool) -> WarmState:
        assert parent.stored is not None
        table = self._log.copy_state(parent.stored, config.mst_key, parent.visits)
        optimizers = parent.config.compile.optimizer, config.compile.optimizer
        return self._log.make_warm_state(
            table,
            choose_clone_source(*optimizers, anew=anew and self._request.spec.train is not None),
        )
