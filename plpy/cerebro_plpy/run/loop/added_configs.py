"""Configurations that are added to a run while it trains: by commands, samplers and rules.

They are checked like those of the call, logged, and trained like them. A clone has the parameters
of another configuration, or parameters near those. A warm clone begins from a copy of the state
that its parent has stored by then. The copy stays as long as the states of the run, for a resume.
In a replay, clones are there from the beginning and wait for that state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import read_logged_functions
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.frameworks import BACKENDS
from cerebro_plpy.configs.params.output_losses import LOSS
from cerebro_plpy.configs.search_space.sampler_space import Point, describe_config
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter, InvalidText
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.config_rows import Origin
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.log.step_log import Command
from cerebro_plpy.run.loop.step import Effect, Step
from cerebro_plpy.run.request.early_stopping import check_monitor
from cerebro_plpy.run.request.run_request import WarmState
from cerebro_plpy.run.state.config_state import ConfigState
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.workers.run_context import RunContext
from cerebro_plpy.run.workers.sampler import add_prior_trials, describe_trial
from cerebro_plpy.run.workers.warm_start_check import choose_clone_source
from cerebro_plpy.scheduling.search.promotion_rules import Decision, Trial
from cerebro_plpy.tables.architectures import BuiltConfigs
from cerebro_plpy.tables.compatibility import check_configs

MAX_PERTURBATIONS = 10
"""How often parameters of a clone are drawn until they are valid; then it has its parent's."""


class AddedConfigs(NamedTuple):
    """Configurations that are ready to be added."""

    configs: Sequence[Config]
    log: Sequence[Statement]  # that log them
    changes: Sequence[Effect]  # that add them to the state
    notes: Sequence[Effect] = ()


class ConfigSource:
    """Prepares configurations for one run: parses, samples, copies states, makes state tables.

    All of that happens before the step that adds them. Repeating it does no harm.
    """

    def __init__(self, state: RunState, log: RunLog, context: RunContext) -> None:
        self._state = state
        self._request = state.request
        self._log = log
        self._context = context
        search = state.request.search
        self._sampling = search.sampling if search else None
        self._points: dict[int, Point] = {}  # of the search space, by mst_key
        if self._sampling:
            points = {**self._sampling.existing_points, **self._sampling.points}
            self._points = {key: point for key, point in points.items() if point is not None}
        self._refused_points: dict[str | None, list[Point]] = defaultdict(list)  # by group

    def clone(self, command: Command) -> AddedConfigs:
        """Return the clone of a configuration that a command adds.

        Raises:
            InvalidParameter: there is no such configuration, or no state for a warm clone.
        """
        parent = self._find_config(command)
        if parent is None:
            raise InvalidParameter(
                f"the run has no configuration {command.mst_key} that could be cloned"
            )
        is_warm = bool(command.change.get("warm"))
        if is_warm and parent.stored is None:
            raise InvalidParameter(
                f"mst_key {command.mst_key} has no state yet that a clone could begin from; clone "
                "it later, or with warm => false"
            )
        built = self._build([{**command.change, "model_id": parent.config.model_id}], parent)
        if is_warm:
            origin = Origin("clone", command.mst_key, command.mst_key, parent.visits)
            return self._prepare(built, origin, parent)
        # A warm clone's result depends on its parent's parameters too, so only a cold one has a
        # point of the search space.
        self._locate(built.configs)
        return self._prepare(built, Origin("clone", command.mst_key), None)

    def add(self, command: Command) -> AddedConfigs:
        """Return configurations of a model selection table or a space that a command adds."""
        built = self._build(command.change["configs"], self._find_config(command))
        self._locate(built.configs)
        return self._prepare(built, Origin("act", command.mst_key), None)

    def sample(self, count: int, trials: Mapping[int, Trial], group: str | None) -> AddedConfigs:
        """Return configurations that the sampler suggests; fewer if it has no more.

        Args:
            trials: the trials so far; those of a group if one is given.
        """
        sampling = self._sampling
        assert sampling is not None
        points = self._suggest(count, trials, group)
        notes: list[Effect] = []
        if len(points) < count:
            of_group = "" if group is None else f" for group {group}"
            text = (
                f"{count_nouns(len(trials) + len(points), 'configuration', 'is')} tried{of_group}: "
                "no others are suggested"
            )
            notes.append(partial(self._context.notify, text))
        configs: list[Config] = []
        architectures = {}
        first_key = self._log.read_next_key()
        for point in points:
            row = {**sampling.space.make_row(point), "group": group}
            try:
                built = self._build_rows({first_key + len(configs): row})
            except (InvalidParameter, DatatypeMismatch):
                self._refused_points[group].append(point)
                continue
            configs += built.configs
            architectures.update(built.architectures)
            self._points[configs[-1].mst_key] = point
        origin = Origin(
            "search", points={config.mst_key: self._points[config.mst_key] for config in configs}
        )
        prepared = self._prepare(BuiltConfigs(tuple(configs), architectures), origin, None)
        return prepared._replace(notes=notes)

    def _suggest(
        self, count: int, trials: Mapping[int, Trial], group: str | None
    ) -> Sequence[Point]:
        """Return points that the sampler suggests; refused ones count as failed trials."""
        assert self._sampling is not None
        epochs = self._request.spec.epochs
        own_trials = [
            describe_trial(point, trials[key], epochs)
            for key, point in sorted(self._points.items())
            if key in trials
        ]
        own_trials += [
            describe_trial(point, Trial(failed=True), epochs)
            for point in self._refused_points[group]
        ]
        all_trials = add_prior_trials(self._sampling.prior_trials, own_trials)
        return self._context.suggest(all_trials, count)

    def derive(self, decision: Decision) -> AddedConfigs:
        """Return the warm clone that a rule has decided on, with parameters near its parent's."""
        assert decision.parent is not None
        parent = self._state.configs[decision.parent]
        origin = Origin("clone", decision.parent, decision.parent, parent.visits)
        built = self._perturb(decision.mst_key, parent.config)
        return self._prepare(built, origin, parent, anew=False)

    def start_clones(self, parent: ConfigState) -> Iterator[Step]:
        """Start the clones of a replay that wait for the state that a configuration has stored."""
        for key, start in list(self._state.waiting.items()):
            if start == (parent.mst_key, parent.visits):
                warm_state = self._copy(self._state.configs[key].config, parent, anew=True)
                yield Step(changes=[partial(self._state.start_clone, key, warm_state)])

    def _find_config(self, command: Command) -> ConfigState | None:
        """Return the configuration that a command names, if there is one."""
        if command.mst_key is None:
            return None
        return self._state.configs.get(command.mst_key)

    def _locate(self, configs: Sequence[Config]) -> None:
        """Let the sampler know the configurations that lie in its space."""
        if self._sampling is None:
            return
        for config in configs:
            point = self._sampling.space.find_point(describe_config(config))
            if point is not None:
                self._points[config.mst_key] = point

    def _perturb(self, mst_key: int, parent: Config) -> BuiltConfigs:
        assert self._sampling is not None
        random = Random(f"{self._request.spec.seed}/{mst_key}")
        for _ in range(MAX_PERTURBATIONS):
            with suppress(InvalidParameter, InvalidText, DatatypeMismatch):
                row = self._sampling.space.perturb(parent, random)
                return self._build_rows({mst_key: row})
        return BuiltConfigs((replace(parent, mst_key=mst_key),), {})

    def _build(self, rows: Sequence[Mapping[str, Any]], like: ConfigState | None) -> BuiltConfigs:
        """Return the configurations of a command's rows, in the group of `like`."""
        group = like.config.group if like else None
        keyed_rows = enumerate(rows, self._log.read_next_key())
        built = self._build_rows({key: {**row, "group": group} for key, row in keyed_rows})
        if self._context.slots:
            self._context.slots.reserve_configs(len(built.configs))
        return built

    def _build_rows(self, rows: Mapping[int, Mapping[str, Any]]) -> BuiltConfigs:
        if self._request.build_configs:
            return self._request.build_configs(rows)
        configs = [self._parse(key, row) for key, row in rows.items()]
        return BuiltConfigs(self._check(configs), {})

    def _parse(self, mst_key: int, row: Mapping[str, Any]) -> Config:
        spec = self._request.spec
        functions = read_logged_functions(spec.object_table, dict(spec.functions))
        compile_text = str(row["compile_params"])
        fit_text = str(row["fit_params"])
        return Config(
            mst_key,
            int(row["model_id"]),
            compile_text,
            fit_text,
            parse_compile_params(compile_text, functions),
            parse_fit_params(fit_text),
        )

    def _check(self, configs: Sequence[Config]) -> tuple[Config, ...]:
        """Check configurations as those of a call are; return them with their metrics."""
        request = self._request
        unknown = sorted({config.model_id for config in configs} - request.architectures.keys())
        if unknown:
            raise InvalidParameter(f"models {unknown} are not among those of the run")
        if any(config.fit.callbacks.tensorboard for config in configs):
            raise InvalidParameter("TensorBoard cannot start during a run")
        models = {config.model_id: request.architectures[config.model_id] for config in configs}
        table = request.architecture_table or Relation("", "", "", 0, "")
        checked = check_configs(configs, models, request.source, table, self._context.check)
        datasets = ["training"] if request.spec.training_metrics else []
        if request.validation:
            datasets.append("validation")
        for config in checked:
            check_monitor(config, datasets, request.patience)
            metrics = [metric.logged_name for metric in (*config.metrics, LOSS)]
            if request.spec.ranking.metric not in metrics:
                raise InvalidParameter(
                    f"{config.compile_text:.120} has no metric {request.spec.ranking.metric}, by "
                    "which the run compares"
                )
        return checked

    def _prepare(
        self, built: BuiltConfigs, origin: Origin, parent: ConfigState | None, *, anew: bool = True
    ) -> AddedConfigs:
        """Return built configurations, ready to be added.

        Args:
            parent: the configuration whose state they begin from.
            anew: their optimizers begin anew, if the run belongs to `cerebro.train`.
        """
        backends = dict(self._state.backends)
        warm_states: dict[int, WarmState] = {}
        for config in built.configs:
            backends[config.mst_key] = self._choose_framework(config)
            if parent:
                warm_states[config.mst_key] = self._copy(config, parent, anew=anew)
        request = self._request.with_configs(
            built, backends, {**self._state.warm_states, **warm_states}
        )
        self._log.make_state_tables(request, [config.mst_key for config in built.configs])
        statements = self._log.build_config_statements(request, built.configs, origin)
        change = partial(self._state.add_configs, request, built.configs, warm_states)
        return AddedConfigs(built.configs, statements, [change])

    def _choose_framework(self, config: Config) -> str:
        """Return the framework of others with the same model or template."""
        frameworks = {
            state.config.template or state.config.model_id: state.framework
            for state in self._state.configs.values()
        }
        framework = frameworks.get(config.template or config.model_id)
        return framework or next(iter(frameworks.values()), BACKENDS[0])

    def _copy(self, config: Config, parent: ConfigState, *, anew: bool) -> WarmState:
        """Copy the state of a parent for a configuration that begins from it."""
        assert parent.stored is not None
        table = self._log.copy_state(parent.stored, config.mst_key, parent.visits)
        source = choose_clone_source(
            parent.config.compile.optimizer,
            config.compile.optimizer,
            anew=anew and self._request.spec.train is not None,
        )
        return self._log.make_warm_state(table, source)
