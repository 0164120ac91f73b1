"""The request of a fit call: everything that its run needs is read and checked first."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import (
    FitArguments,
    RunSpec,
    SearchSpec,
    SingleModel,
    list_metric_epochs,
)
from cerebro_plpy.configs.search_space.search_rules import (
    RuleContext,
)
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.operations.fit.config_sampling import (
    add_configs,
    choose_added_configs,
    make_sampling_request,
    sample_configs,
)
from cerebro_plpy.operations.fit.fit_arguments import RunOptions, has_metrics
from cerebro_plpy.operations.fit.input_tables import InputTables, ModelInputs
from cerebro_plpy.operations.fit.spec_request import make_replay, make_request, make_rule
from cerebro_plpy.operations.fit.worker_count import (
    choose_copy_count,
    count_possible_workers,
)
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.records import replace
from cerebro_plpy.run.request.early_stopping import check_monitor
from cerebro_plpy.run.request.ranking import choose_ranking
from cerebro_plpy.run.request.replay import (
    check_clone_starts,
    check_functions,
    check_replay_arguments,
    read_run_record,
)
from cerebro_plpy.run.request.run_request import FitRequest, Replay
from cerebro_plpy.scheduling.planning.run_plan import LATE
from cerebro_plpy.scheduling.schedule.schedule import AVERAGING
from cerebro_plpy.scheduling.schedule.scheduling_policies import REPLAY
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import check_columns, read_architectures
from cerebro_plpy.tables.compatibility import check_configs, list_idle_losses, list_notices
from cerebro_plpy.tables.model_selection_table import SINGLE_KEY, add_parameter_detail, read_configs

TENSORBOARD_BACKEND = "tensorflow"


class FitCall(NamedTuple):
    """A fit call."""

    arguments: FitArguments
    options: RunOptions
    inputs: InputTables
    output: Relation | None  # does not exist yet; None for a call that is only planned
    version: str  # of the extension
    search: SearchSpec | None = None  # of a call of AutoML


class ResolvedCall(NamedTuple):
    """Values that a call leaves open, or takes over from the run that it repeats."""

    models: ModelInputs
    seed: int
    dtype_policy: str | None
    schedule: str
    probes: tuple[Config, ...] = ()  # together, they have all values of later configurations
    replay: Replay = Replay()
    epochs_before: Mapping[int, int] = {}

    @property
    def mst_keys(self) -> list[int]:
        """Return the keys of the configurations that the run begins with."""
        return [config.mst_key for config in self.models.configs]


def build_request(catalog: Catalog, context: CallContext, call: FitCall) -> FitRequest:
    """Read and check everything that a run needs; nothing was written if this fails."""
    arguments = call.arguments
    options = call.options
    data = call.inputs.packed.read(catalog, context.reader)
    resolved = _resolve_call(catalog, context, call, data.source)
    models = resolved.models
    configs = [*models.configs, *resolved.probes]
    _check_tensorboard(catalog, arguments, configs)
    _check_monitors(catalog, call, configs)
    _report_notices(catalog, models, data.source)
    tables = {role: relation.quoted for role, relation in call.inputs.get_relations().items()}
    if call.output:
        tables["model_output"] = call.output.quoted
    spec = RunSpec(
        arguments=arguments,
        epochs=options.epochs,
        frequency=options.frequency,
        evaluate_epochs=_list_evaluated_epochs(catalog, call, resolved),
        seed=resolved.seed,
        schedule=resolved.schedule,
        dtype_policy=resolved.dtype_policy,
        model_arch_table=models.table.spelling if models.table else None,
        object_table=call.inputs.object_table,
        segments=data.source.segments,
        source=data.source.spec(),
        validation=data.validation.spec() if data.validation else None,
        ranking=choose_ranking(configs, data.validation is not None, by_loss=bool(call.search)),
        version=call.version,
        functions=_collect_functions(configs),
        tables=tables,
        epochs_before=resolved.epochs_before,
        search=call.search,
        prior_trials=models.sampling.prior_trials if models.sampling else (),
        copies=resolved.replay.copies,
    )
    if arguments.strategy == LATE and spec.schedule == AVERAGING and spec.copies is None:
        workers = count_possible_workers(context, spec, data)
        copies = choose_copy_count(workers, len(models.configs), spec.segments)
        spec = replace(spec, copies=copies)
    _report_averaging(catalog, spec)
    request = make_request(catalog, context, spec, data, models, resolved.replay)
    for config in configs:
        check_monitor(config, _list_datasets(arguments), request.patience)
    return request


def _resolve_call(
    catalog: Catalog, context: CallContext, call: FitCall, source: PackedTable
) -> ResolvedCall:
    """Read the configurations that the call names, and add those that are sampled or repeated."""
    arguments = call.arguments
    options = call.options
    functions = object_table.read_functions(catalog, call.inputs.objects)
    models = _read_models(catalog, context, call, source, functions)
    if options.schedule == REPLAY:
        return _resolve_replay(catalog, context, call, source, models, functions)
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    resolved = ResolvedCall(models, seed, arguments.dtype_policy, options.schedule)
    if options.rule is None or options.rule.sampling is None:
        return resolved
    rank = partial(
        choose_ranking,
        has_validation=call.inputs.packed.validation is not None,
        by_loss=bool(call.search),
    )
    sampling = make_sampling_request(options.rule.sampling, models, functions, seed, rank)
    models, probes = sample_configs(catalog, context, models, source, sampling)
    mst_keys = [config.mst_key for config in models.configs]
    backends = frameworks.list_frameworks(arguments.backend, mst_keys)
    return resolved._replace(models=models._replace(backends=backends), probes=probes)


def _resolve_replay(
    catalog: Catalog,
    context: CallContext,
    call: FitCall,
    source: PackedTable,
    models: ModelInputs,
    functions: Functions | None,
) -> ResolvedCall:
    """Take over what determines the bits of the run that the call repeats."""
    module = catalog.module
    epochs = call.options.epochs
    recorded = read_run_record(context.control, module, call.arguments.replay_run)
    check_replay_arguments(module, call.arguments, recorded)
    added_configs = choose_added_configs(catalog.db, models, recorded, epochs)
    models = add_configs(context, models, added_configs, functions, source)
    check_functions(module, recorded, _collect_functions(models.configs))
    resolved = ResolvedCall(
        models._replace(backends=recorded.backends),
        recorded.seed,
        recorded.dtype_policy,
        AVERAGING if recorded.is_averaging else REPLAY,
        epochs_before=dict(recorded.epochs_before),
    )
    replay = make_replay(catalog, recorded, epochs, source, resolved.mst_keys)
    check_clone_starts(module, recorded, epochs, resolved.mst_keys)
    return resolved._replace(replay=replay)


def _read_models(
    catalog: Catalog,
    context: CallContext,
    call: FitCall,
    source: PackedTable,
    functions: Functions | None,
) -> ModelInputs:
    """Read the configurations that the call names, and check that they fit the data."""
    inputs = call.inputs
    configs: tuple[Config, ...] = ()
    if call.arguments.single:
        configs = (_parse_single_config(call.arguments.single, functions),)
    elif not call.search:
        assert inputs.selection is not None
        configs = read_configs(catalog, context.reader, inputs.selection, functions)
    table = check_columns(catalog, inputs.architectures)
    model_ids = sorted({config.model_id for config in configs})
    architectures = read_architectures(context.reader, table, model_ids)
    configs = check_configs(configs, architectures, source, table, context.check)
    mst_keys = [config.mst_key for config in configs]
    backends = frameworks.list_frameworks(call.arguments.backend, mst_keys)
    return ModelInputs(configs, architectures, table, backends)


def _check_tensorboard(
    catalog: Catalog, arguments: FitArguments, configs: Iterable[Config]
) -> None:
    """Check that TensorFlow trains, which writes TensorBoard's files, if they are requested."""
    if arguments.backend in (None, TENSORBOARD_BACKEND):
        return
    if any(config.fit.callbacks.tensorboard for config in configs):
        raise FeatureNotSupported(
            f"{catalog.module} error: backend is {arguments.backend!r}, but TensorBoard's files "
            "are written by TensorFlow.",
            hint="Leave backend out, or callbacks.",
        )


def _check_monitors(catalog: Catalog, call: FitCall, configs: Iterable[Config]) -> None:
    """Check that EarlyStopping monitors computed metrics; report if it cannot stop anything."""
    options = call.options
    monitored = [config for config in configs if config.fit.callbacks.early_stopping]
    for config in monitored:
        check_monitor(config, _list_datasets(call.arguments))
    if monitored and options.frequency >= options.epochs > 1:
        catalog.db.notice(
            f"EarlyStopping stops nothing: metrics are computed after iteration {options.epochs} "
            "alone. With metrics_compute_frequency => 1 they are computed after each."
        )


def _list_datasets(arguments: FitArguments) -> list[str]:
    """Return the data sets over which metrics are computed."""
    datasets = []
    if arguments.training_metrics is not False:
        datasets.append("training")
    if arguments.validation_table is not None:
        datasets.append("validation")
    return datasets


def _collect_functions(configs: Iterable[Config]) -> dict[str, str]:
    """Return the digests of the custom functions that configurations name."""
    digests: dict[str, str] = {}
    for config in configs:
        if config.compile.custom:
            digests.update(config.compile.custom.digests)
    return digests


def _report_notices(catalog: Catalog, models: ModelInputs, source: PackedTable) -> None:
    """Report settings that have another effect than a user may expect."""
    texts: set[str] = set()
    for config in models.configs:
        notices = list_notices(config, source)
        losses = list_idle_losses(config, models.architectures[config.model_id])
        texts.update(f"mst_key={config.mst_key}: {notice}" for notice in (*notices, *losses))
    for text in sorted(texts):
        catalog.db.notice(text)


def _report_averaging(catalog: Catalog, spec: RunSpec) -> None:
    """Report that models need more iterations if copies of each are trained and averaged."""
    copies = len(spec.copy_segments)
    if copies <= 1:
        return
    share = "segment" if copies == len(spec.segments) else "part of the segments"
    catalog.db.notice(
        f"{catalog.module}: after each iteration a model is the mean of {copies}, one for each "
        f"{share}, of which each has seen its own rows only: it takes more iterations than one "
        "model that sees all. madlib_fit_multiple_model trains such ones on the same table, unless "
        "strategy says that it is to average."
    )


def _list_evaluated_epochs(
    catalog: Catalog, call: FitCall, resolved: ResolvedCall
) -> tuple[int, ...]:
    """Return the epochs that end with an evaluation; report if there is nothing to evaluate."""
    options = call.options
    replay = resolved.replay
    if not has_metrics(call.arguments):
        catalog.db.notice(
            "training_metrics is false and there is no validation_table: no metrics will be "
            "computed."
        )
        return ()
    regular = list_metric_epochs(options.epochs, options.frequency)
    rule_context = RuleContext(options.epochs, regular)
    rule = make_rule(options.rule, dict.fromkeys(resolved.mst_keys), rule_context, replay)
    epochs = {epoch for epoch in replay.evaluate_epochs if epoch <= options.epochs}
    epochs.update(regular)
    if rule:
        epochs.update(rule.decision_epochs)
    return tuple(sorted(epochs))


def _parse_single_config(model: SingleModel, functions: Functions | None) -> Config:
    """Return the configuration of a call that trains a single model."""
    compile_text = model.compile_params or ""
    fit_text = model.fit_params or ""
    with add_parameter_detail("Compile", compile_text):
        compiled = parse_compile_params(compile_text, functions)
    with add_parameter_detail("Fit", fit_text):
        fitted = parse_fit_params(fit_text)
    return Config(SINGLE_KEY, model.model_id or 0, compile_text, fit_text, compiled, fitted)
