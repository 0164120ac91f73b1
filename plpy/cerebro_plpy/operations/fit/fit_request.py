"""From the arguments of a fit call to a request that can be trained: everything is read and checked
first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.early_stopping import EarlyStopping
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import (
    FitArguments,
    RunSpec,
    SearchSpec,
    SingleModel,
    list_metric_epochs,
)
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.search_space.search_rules import (
    RuleContext,
    SearchRule,
    make_grouped_rule,
)
from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.database.call_checks import read_seconds
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.operations.fit.config_sampling import (
    add_configs,
    choose_added_configs,
    make_sampling_request,
    sample_configs,
)
from cerebro_plpy.operations.fit.cost_limits import make_run_limits
from cerebro_plpy.operations.fit.fit_arguments import AUTO, RunOptions
from cerebro_plpy.operations.fit.input_tables import InputTables, ModelInputs, PackedData
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.records import replace
from cerebro_plpy.run.loop import messages
from cerebro_plpy.run.loop.replay import (
    RunRecord,
    check_clones,
    check_functions,
    check_record,
    check_settings,
    read_record,
)
from cerebro_plpy.run.planning import parallelism
from cerebro_plpy.run.request.early_stopping import check_monitor
from cerebro_plpy.run.request.run_request import FitRequest, Repeat, Searching
from cerebro_plpy.scheduling.planning.run_plan import LATE
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING
from cerebro_plpy.scheduling.schedule.scheduling_policies import REPLAY
from cerebro_plpy.scheduling.search.promotion_rules import ReplayedEpochs, Rule
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import StoredModel, check_columns, read_architectures
from cerebro_plpy.tables.compatibility import check_configs, list_idle_losses, list_notices
from cerebro_plpy.tables.model_selection_table import SINGLE_KEY, add_parameter_detail, read_configs
from cerebro_plpy.trainer_client import settings

WRITER = "tensorflow"
UNGROUPED: Mapping[str, GroupLayout] = {}


class FitCall(NamedTuple):
    """A fit call: its arguments, what was checked of them, and the tables that it names; the output
    is still to be, and for a call of AutoML (`search`) the model selection table, too. One that is
    only planned has no output."""

    arguments: FitArguments
    course: RunOptions
    inputs: InputTables
    output: Relation | None
    version: str
    search: SearchSpec | None = None


class ResolvedCall(NamedTuple):
    """What a call has left open, or takes over from the run that it repeats.

    `probes` are configurations that name all that those may name that are drawn later.
    """

    models: ModelInputs
    seed: int
    dtype_policy: str | None
    schedule: str
    probes: tuple[Config, ...] = ()
    repeat: Repeat = Repeat()
    epochs_before: Mapping[int, int] = {}

    @property
    def mst_keys(self) -> list[int]:
        """Those of the configurations that the run begins with."""
        return [config.mst_key for config in self.models.configs]


def build_request(catalog: Catalog, workplace: CallContext, call: FitCall) -> FitRequest:
    """Read and check all that the run needs; nothing has been written when this fails."""
    arguments, course = call.arguments, call.course
    data = call.inputs.packed.read(catalog, workplace.reader)
    basis = resolve_call(catalog, workplace, call, data.source)
    models, whole = basis.models, [*basis.models.configs, *basis.probes]
    check_writer(catalog, arguments, whole)
    check_monitors(catalog, call, whole)
    give_notices(catalog, models.configs, models.architectures, data.source)
    spec = RunSpec(
        arguments=arguments,
        epochs=course.epochs,
        frequency=course.frequency,
        evaluate_epochs=evaluated_epochs(catalog, arguments, course, basis.repeat, basis.mst_keys),
        seed=basis.seed,
        schedule=basis.schedule,
        dtype_policy=basis.dtype_policy,
        model_arch_table=models.table.spelling if models.table else None,
        object_table=call.inputs.object_table,
        segments=data.source.segments,
        source=data.source.spec(),
        validation=data.validation.spec() if data.validation else None,
        ranking=messages.ranking_of(whole, data.validation is not None, loss=bool(call.search)),
        version=call.version,
        functions=functions_of(whole),
        tables={
            n: r.quoted
            for n, r in {**call.inputs.get_relations(), "model_output": call.output}.items()
            if r
        },
        epochs_before=basis.epochs_before,
        search=call.search,
        prior_trials=models.drawing.earlier if models.drawing else (),
        copies=basis.repeat.copies,
    )
    if arguments.strategy == LATE and basis.schedule == AVERAGING and spec.copies is None:
        spec = replace(
            spec,
            copies=copies_for(
                most_workers(workplace, spec, data), len(models.configs), spec.segments
            ),
        )
    tell_of_averages(catalog, spec)
    request = make_request(catalog, workplace, spec, data, models, basis.repeat)
    datasets = [
        name
        for name, there in (("training", spec.training_metrics), ("validation", data.validation))
        if there
    ]
    for config in whole:
        check_monitor(config, datasets, request.patience)
    return request


def resolve_call(
    catalog: Catalog, workplace: CallContext, call: FitCall, source: PackedTable
) -> ResolvedCall:
    """The configurations that the call names, those that are drawn or repeated beside them, and
    what else is open.
    """
    arguments, rule = call.arguments, call.course.rule
    models = read_models(catalog, workplace, call, source)
    functions = object_table.read_functions(catalog, call.inputs.objects)
    if call.course.schedule == REPLAY:
        recorded = read_record(workplace.control, catalog.module, arguments.replay_run)
        check_settings(catalog.module, arguments, recorded)
        joined = choose_added_configs(catalog.db, models, recorded, call.course.epochs)
        models = add_configs(workplace, models, joined, functions, source)
        check_functions(catalog.module, recorded, functions_of(models.configs))
        models = models._replace(backends=recorded.backends)
        basis = ResolvedCall(
            models, recorded.seed, recorded.dtype_policy, AVERAGING if recorded.averages else REPLAY
        )
        repeat = make_repeat(catalog, recorded, call.course.epochs, source, basis.mst_keys)
        check_clones(catalog.module, recorded, call.course.epochs, basis.mst_keys)
        return basis._replace(repeat=repeat, epochs_before=dict(recorded.epochs_before))
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    basis = ResolvedCall(models, seed, arguments.dtype_policy, call.course.schedule)
    if rule is None or rule.sampling is None:
        return basis
    validated, loss = call.inputs.packed.validation is not None, bool(call.search)
    rank = partial(messages.ranking_of, has_validation=validated, loss=loss)
    wish = make_sampling_request(rule.sampling, models, functions, basis.seed, rank)
    models, probes = sample_configs(catalog, workplace, models, source, wish)
    backends = frameworks.list_frameworks(
        arguments.backend, [config.mst_key for config in models.configs]
    )
    return basis._replace(models=models._replace(backends=backends), probes=probes)


def read_models(
    catalog: Catalog, workplace: CallContext, call: FitCall, source: PackedTable
) -> ModelInputs:
    """What the call asks to train, and that it fits the data."""
    inputs, single = call.inputs, call.arguments.single
    functions = object_table.read_functions(catalog, inputs.objects)
    configs: tuple[Config, ...] = ()
    if single:
        configs = (single_config(single, functions),)
    elif not call.search:
        assert inputs.selection is not None
        configs = read_configs(catalog, workplace.reader, inputs.selection, functions)
    table = check_columns(catalog, inputs.architectures)
    architectures = read_architectures(
        workplace.reader, table, sorted({c.model_id for c in configs})
    )
    configs = check_configs(configs, architectures, source, table, workplace.check)
    backends = frameworks.list_frameworks(
        call.arguments.backend, [config.mst_key for config in configs]
    )
    return ModelInputs(configs, architectures, table, backends)


def make_request(
    catalog: Catalog,
    workplace: CallContext,
    spec: RunSpec,
    data: PackedData,
    models: ModelInputs,
    repeat: Repeat,
) -> FitRequest:
    """The request of this spec, over these data and models."""
    arguments = spec.arguments
    request = FitRequest(
        spec=spec,
        source=data.source,
        validation=data.validation,
        configs=models.configs,
        architectures=models.architectures,
        architecture_table=models.table,
        workers=workers_for(workplace, spec, data, models.config_count),
        gpus=settings.choose_gpus(workplace.settings, arguments.use_gpus),
        backends=models.backends,
        max_runtime=read_seconds(catalog.db, catalog.module, "max_runtime", arguments.max_runtime),
        repeat=repeat,
        commit_seconds=workplace.settings.commit_seconds,
        search=make_search(catalog.module, spec, models, repeat),
        groups=spec.train.groups if spec.train else {},
        block_rows=spec.train.block_rows if spec.train else None,
        patience=repeat.patience or make_early_stopping(catalog.module, spec),
        strategy=arguments.strategy if arguments.strategy != AUTO else None,
        allowance=make_run_limits(
            catalog.module, workplace.settings, spec, _read_rule(catalog.module, spec)
        ),
    )
    return replace(request, workers=parallelism.workers(workplace, request))


def workers_for(workplace: CallContext, spec: RunSpec, data: PackedData, configs: int) -> int:
    """How many workers train at a time, which share the cores: as many as are asked for, or can be
    busy.
    """
    most = most_workers(workplace, spec, data)
    if spec.arguments.workers or spec.schedule == AVERAGING:
        return most
    rows = sum(table.decoded_bytes for table in (data.source, data.validation) if table)
    return fewest(most, configs, rows, partial(settings.cache_bytes, workplace.settings))


def most_workers(workplace: CallContext, spec: RunSpec, data: PackedData) -> int:
    """As many workers as are asked for, or have room; no more than there are segments."""
    segments = len(data.source.segments)
    return min(spec.arguments.workers or workplace.platform.default_workers(segments), segments)


def fewest(most: int, configs: int, rows: int, room: Callable[[int], int]) -> int:
    """How many workers so many configurations keep busy, or more where these have no room for all
    rows.

    A configuration is in one place at a time. `rows` are bytes, `room` those of each of so many
    workers.

    >>> ([fewest(4, configs, 100, lambda workers: 60) for configs in (1, 3, 9)],
    ...  fewest(4, 1, 100, lambda workers: 0))
    ([2, 3, 4], 4)
    """
    return next(
        (workers for workers in range(min(most, configs), most) if workers * room(workers) >= rows),
        most,
    )


def check_writer(catalog: Catalog, arguments: FitArguments, configs: Iterable[Config]) -> None:
    """What TensorBoard shows is written by one framework alone."""
    if arguments.backend not in (None, WRITER) and any(
        config.fit.callbacks.tensorboard for config in configs
    ):
        raise FeatureNotSupported(
            f"{catalog.module} error: backend is {arguments.backend!r}, but TensorBoard's files "
            "are written by TensorFlow.",
            hint="Leave backend out, or callbacks.",
        )


def check_monitors(catalog: Catalog, call: FitCall, configs: Iterable[Config]) -> None:
    """EarlyStopping watches what is computed, and can stop something."""
    arguments, course = call.arguments, call.course
    watching = [config for config in configs if config.fit.callbacks.early_stopping]
    training = [] if arguments.training_metrics is False else ["training"]
    validation = [] if arguments.validation_table is None else ["validation"]
    for config in watching:
        check_monitor(config, training + validation)
    if watching and course.frequency >= course.epochs > 1:
        catalog.db.notice(
            f"EarlyStopping stops nothing: metrics are computed after iteration {course.epochs} "
            "alone. With metrics_compute_frequency => 1 they are computed after each."
        )


def functions_of(configs: Iterable[Config]) -> dict[str, str]:
    """The custom functions that configurations name, with the digests of their sources."""
    return {
        name: digest
        for c in configs
        if c.compile.custom
        for name, digest in c.compile.custom.digests
    }


def give_notices(
    catalog: Catalog,
    configs: Iterable[Config],
    architectures: Mapping[int, StoredModel],
    source: PackedTable,
) -> None:
    """Notices about settings that are understood otherwise than a user may expect."""
    notes = {
        c.mst_key: (*list_notices(c, source), *list_idle_losses(c, architectures[c.model_id]))
        for c in configs
    }
    for text in sorted({f"mst_key={key}: {note}" for key, its in notes.items() for note in its}):
        catalog.db.notice(text)


def copies_for(workers: int, configs: int, segments: Sequence[int]) -> int:
    """In how many copies configurations train that keep so many workers busy; two at least, where
    there are segments.

    >>> [copies_for(8, configs, range(8)) for configs in (1, 2, 3, 20)], copies_for(8, 1, range(1))
    ([8, 4, 2, 2], 1)
    """
    return min(max(2, workers // configs), len(segments))


def tell_of_averages(catalog: Catalog, spec: RunSpec) -> None:
    """What models cost of which copies train at once."""
    copies = len(spec.copy_segments)
    if copies > 1:
        whose = (
            "one for each segment"
            if copies == len(spec.segments)
            else "one for each part of the segments"
        )
        catalog.db.notice(
            f"{catalog.module}: after each iteration a model is the mean of {copies}, {whose}, of "
            "which each has seen its own rows only: it takes more iterations than one model that "
            "sees all. madlib_fit_multiple_model trains such ones on the same table, unless "
            "strategy says that it is to average."
        )


def evaluated_epochs(
    catalog: Catalog,
    arguments: FitArguments,
    course: RunOptions,
    repeat: Repeat,
    mst_keys: Sequence[int],
) -> tuple[int, ...]:
    """The epochs that end with an evaluation; the caller is told where there is nothing to evaluate
    on.
    """
    if arguments.training_metrics is not False or arguments.validation_table is not None:
        usual = list_metric_epochs(course.epochs, course.frequency)
        rule = make_rule(
            course.rule, dict.fromkeys(mst_keys), RuleContext(course.epochs, usual), repeat
        )
        repeated = {epoch for epoch in repeat.evaluated if epoch <= course.epochs}
        return tuple(sorted({*usual, *(rule.decision_epochs if rule else ()), *repeated}))
    catalog.db.notice(
        "training_metrics is false and there is no validation_table: no metrics will be computed."
    )
    return ()


def make_rule(
    rule: SearchRule | None,
    mst_keys: Mapping[int, str | None],
    span: RuleContext,
    repeat: Repeat,
    groups: Mapping[str, GroupLayout] = UNGROUPED,
) -> Rule | None:
    """What decides which of these configurations go on: in a replay, what was decided."""
    if repeat.limits:
        return ReplayedEpochs(repeat.limits)
    return make_grouped_rule(rule, mst_keys, span, groups) if rule else None


def make_search(
    module: str,
    spec: RunSpec,
    models: ModelInputs,
    repeat: Repeat,
    failed: Sequence[tuple[int, str | None]] = (),
) -> Searching | None:
    """The search of a run of all these configurations, and those that have `failed`; None where all
    go on.
    """
    named = _read_rule(module, spec)
    keys = dict(sorted([*failed, *((config.mst_key, config.group) for config in models.configs)]))
    span = RuleContext(
        spec.epochs, spec.evaluate_epochs, spec.ranking.descending, len(spec.segments), spec.seed
    )
    rule = make_rule(named, keys, span, repeat, spec.train.groups if spec.train else {})
    live = named.live_states if named else None
    of = {key: group for key, group in keys.items() if group is not None}
    name = spec.arguments.search or "replay"
    return Searching(name, rule, tuple(keys), models.drawing, live, of) if rule else None


def make_early_stopping(module: str, spec: RunSpec) -> EarlyStopping | None:
    """What stops configurations of a search by patience."""
    named = _read_rule(module, spec)
    return named.make_early_stopping(spec.ranking) if named else None


def _read_rule(module: str, spec: RunSpec) -> SearchRule | None:
    asked = spec.arguments.search, spec.arguments.search_params, spec.epochs
    return read_search_rule(module, *asked, templates=spec.train is not None)


def make_repeat(
    catalog: Catalog,
    recorded: RunRecord,
    epochs: int,
    source: PackedTable,
    mst_keys: Collection[int],
) -> Repeat:
    """What of an earlier run is repeated for these configurations."""
    orders = check_record(catalog.module, recorded, epochs, source.segments, mst_keys)
    joined = {each.mst_key: each.source for each in recorded.joined if each.mst_key in mst_keys}
    starts = {key: start for key, start in recorded.starts.items() if key in mst_keys}
    cuts = {key: layer for key, layer in recorded.cuts.items() if key in mst_keys}
    kept = recorded.patience, recorded.evaluated, recorded.whole, cuts, recorded.copies
    return Repeat(
        orders,
        recorded.forms,
        recorded.threads,
        recorded.endings,
        recorded.limits,
        joined,
        starts,
        *kept,
    )


def single_config(model: SingleModel, functions: Functions | None) -> Config:
    """The configuration of a call that trains a single model."""
    compile_text, fit_text = model.compile_params or "", model.fit_params or ""
    with add_parameter_detail("Compile", compile_text):
        compiled = parse_compile_params(compile_text, functions)
    with add_parameter_detail("Fit", fit_text):
        fitted = parse_fit_params(fit_text)
    return Config(SINGLE_KEY, model.model_id or 0, compile_text, fit_text, compiled, fitted)
