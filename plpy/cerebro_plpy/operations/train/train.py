"""Training of a model by name: read a table, pack it, and train configurations of templates."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.run_spec import FitArguments, Ranking, RunSpec, list_metric_epochs
from cerebro_plpy.configs.search_space.search_rules import RuleContext
from cerebro_plpy.configs.templates.budget import (
    Effort,
    Workload,
    choose_frequency,
    choose_training_epochs,
)
from cerebro_plpy.configs.templates.candidates import MANY_ROWS
from cerebro_plpy.configs.templates.layers.model_io import Floats
from cerebro_plpy.configs.templates.registry import list_starts
from cerebro_plpy.configs.train_spec import DataSplit, Grouping, QueryRecord, TrainSpec
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.call_status import LOOKING
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.custom_settings import read_settings_for_reader
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.database.table_visibility import refuse_private_source
from cerebro_plpy.limits import Poll
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.fit.fit_arguments import fill_arguments
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.operations.fit.prior_runs import collect_prior_trials, read_prior_runs
from cerebro_plpy.operations.fit.spec_request import make_request, make_rule
from cerebro_plpy.operations.register.register_version import register_version
from cerebro_plpy.operations.train import model_name
from cerebro_plpy.operations.train.group_configs import (
    PlannedConfig,
    make_group_layouts,
    plan_configs,
)
from cerebro_plpy.operations.train.pack_training_data import (
    PackingRequest,
    TrainingData,
    drop_after_error,
    pack_training_data,
)
from cerebro_plpy.operations.train.run_results import read_leaderboard
from cerebro_plpy.operations.train.template_sampling import plan_sampling
from cerebro_plpy.operations.train.train_report import (
    describe_decisions,
    report_classes,
    report_table,
)
from cerebro_plpy.operations.train.train_request import (
    TrainRequest,
    choose_templates,
    find_prior_configs,
    find_sources,
    generate_proposals,
    make_final_metric,
    make_ranking,
    make_train_request,
    open_catalog,
    resolve_source,
)
from cerebro_plpy.operations.train_arguments import (
    MODULE,
    TrainArguments,
    may_return,
    read_arguments,
    resolve_metric,
)
from cerebro_plpy.operations.train_budget import MAX_PREPARATION_SHARE
from cerebro_plpy.operations.train_effort import (
    choose_picks,
    find_first_keys,
    make_deadline,
    make_workload,
    plan_effort,
    put_quick_first,
    sample_to_budget,
    select_rates,
)
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, read_table
from cerebro_plpy.records import asdict, replace
from cerebro_plpy.run.lifecycle import (
    OnLogged,
    RunListeners,
    ignore_run_id,
    log_completion_errors,
    reserve_run_id,
)
from cerebro_plpy.run.lifecycle import train as run_to_end
from cerebro_plpy.run.planning.template_rates import measure_rates
from cerebro_plpy.run.request.run_request import FitRequest, Replay, SamplingPlan
from cerebro_plpy.scheduling.schedule.scheduling_policies import FOREMOST
from cerebro_plpy.tables.template_configs import ConfigBuilder, TemplateConfig, build_configs
from cerebro_plpy.trainer_client import settings

MEASURING_SHARE = 0.15
"""The largest share of the budget in which rates are measured."""
MIN_TUNED_SECONDS = 20.0
"""Budget from which on the rates of templates are measured before configurations begin."""
SCHEDULE = FOREMOST
"""Two runs with the same seed have the same bits, unless the budget ends them."""


class TrainCall(NamedTuple):
    """A call of `cerebro.train`."""

    catalog: Catalog
    context: CallContext
    request: TrainRequest
    version: str  # of this package
    start: float  # by time.monotonic()

    @property
    def elapsed_seconds(self) -> float:
        """The time since the call began."""
        return time.monotonic() - self.start


class EvaluatedEpochs(NamedTuple):
    """The epochs of a run that end with an evaluation."""

    epochs: tuple[int, ...]
    training: tuple[int, ...] | None  # those that also evaluate the training rows; None for all


def train(
    db: Database,
    gd: dict[str, Any],
    arguments: TrainArguments,
    version: str,
    logged: OnLogged = ignore_run_id,
) -> list[Row]:
    """Train a model by name; return the leaderboard of its run.

    Args:
        version: of this package.
        logged: is called with the id of the run once the run is in the log.
    """
    start = time.monotonic()
    catalog = open_catalog(db, MODULE, arguments)
    check_transaction(db, MODULE, has_background=True)
    db.call_limit.background = "background => true"
    parsed = read_arguments(db, MODULE, arguments)
    db.status.begin(parsed.budget)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    source = resolve_source(catalog, arguments, parsed, is_read_apart=True)
    sources = find_sources(catalog, arguments, source, parsed)
    for relation in sources:
        refuse_private_source(db, MODULE, relation)
    custom = read_settings_for_reader(db, sources)
    with open_context(db, gd, [source], arguments.workers, custom) as context:
        model_name.reserve(catalog, context.control, arguments, source, parsed.target)
        request = make_train_request(catalog, context.control, arguments, source, parsed)
        call = TrainCall(catalog, context, request, version, start)
        run_id = reserve_run_id(db, context)
        context.show_preparation(run_id, LOOKING)
        limit = read_wait_limit(db, parsed.budget - call.elapsed_seconds)
        for table in filter(None, (source, request.table_options.holdout)):
            wait_for_source(db, context.control, table, limit)

        def read_sample(rows: SourceRows) -> RawTable:
            table = read_table(rows, MODULE, source, request.table_options, may_sample=True)
            return sample_to_budget(request, db, rows.session, table, call.elapsed_seconds)

        packing = PackingRequest(source, db.reading, limit, request.model)
        with drop_after_error(context, run_id):
            data = pack_training_data(catalog, context, read_sample, run_id, packing)
            report_table(db, data.table)
            report_classes(db, request, data.table)
            fit_request = build_fit_request(call, data)
            tuned_call = measure_templates(call, data, fit_request)
            if tuned_call is not call:
                request = tuned_call.request
                fit_request = build_fit_request(tuned_call, data)
            db.info(describe_decisions(request, data.table, fit_request))
            run_to_end(db, context, fit_request, None, RunListeners(logged), run_id)
    with log_completion_errors(db, gd, run_id):
        register_version(db, gd, run_id, start + context.queued_seconds + parsed.budget)
    templates = choose_templates(request, data.table)
    return read_leaderboard(db, run_id, templates, data.table)


def build_fit_request(call: TrainCall, data: TrainingData) -> FitRequest:
    """Build the request of the run: configurations, and epochs for the remaining time."""
    request = call.request
    context = call.context
    table = data.table
    packed = data.data
    ranking = make_ranking(request, table.target.task)
    load = make_workload(request, context.platform, table, len(packed.source.segments))
    effort = _choose_effort(call, table, load)
    prior_configs = find_prior_configs(request, context.control, table)
    evaluated = _choose_evaluated_epochs(request, effort, ranking)
    proposals = generate_proposals(request, prior_configs, table, context.check)
    first_proposals = list(islice(proposals, effort.configs))
    configs = plan_configs(first_proposals, table.groups, table.rows)
    train_spec = make_train_spec(request, data, configs, effort.configs)
    spec = RunSpec(
        arguments=make_fit_arguments(request, data),
        epochs=effort.epochs,
        frequency=choose_frequency(effort.epochs),
        evaluate_epochs=evaluated.epochs,
        training_epochs=evaluated.training,
        seed=request.seed,
        schedule=SCHEDULE,
        dtype_policy=None,
        model_arch_table=None,
        object_table=None,
        segments=packed.source.segments,
        source=packed.source.spec(),
        validation=packed.validation.spec() if packed.validation else None,
        ranking=ranking,
        version=call.version,
        tables={name: table.quoted for name, table in data.inputs.get_relations().items()},
        train=train_spec,
        tree_period=request.template_choice.choose_tree_period(table),
    )
    models = build_models(spec, configs, data, context.check)
    sampling_plan = _plan_sampling(call, spec, table, configs, prior_configs.runs)
    if sampling_plan is not None:
        models = models._replace(sampling=sampling_plan)
        spec = replace(spec, prior_trials=sampling_plan.prior_trials)
    fit_request = make_request(call.catalog, context, spec, packed, models, Replay())
    templates = {template.name: template for template in choose_templates(request, table)}
    return replace(
        fit_request,
        build_configs=ConfigBuilder(spec, packed.source, templates, context.check),
        starts=list_starts(train_spec.templates, table.rows),
        deadline=make_deadline(request, table, call.elapsed_seconds),
    )


def measure_templates(call: TrainCall, data: TrainingData, fit_request: FitRequest) -> TrainCall:
    """Return the call with measured rates of its templates, if its effort is open.

    Args:
        fit_request: the request that is built without rates.
    """
    request = call.request
    train = fit_request.spec.train
    assert train is not None
    budget = request.parsed.budget
    is_late = call.elapsed_seconds > MAX_PREPARATION_SHARE * budget
    if not train.may_return or budget < MIN_TUNED_SECONDS or is_late:
        return call
    if data.table.rows < MANY_ROWS:
        return call
    first_keys = find_first_keys(train.templates)
    if not first_keys:
        return call
    until = time.monotonic() + MEASURING_SHARE * budget
    rates = measure_rates(call.context, fit_request, list(first_keys.values()), until)
    if not rates:
        return call
    measured = {template: rates.get(key, math.inf) for template, key in first_keys.items()}
    if min(measured.values()) == math.inf:
        return call._replace(request=put_quick_first(request, train.template_names))
    load = make_workload(
        request, call.context.platform, data.table, len(fit_request.source.segments)
    )
    remaining = budget - call.elapsed_seconds
    selected = select_rates(request, data.table, load, measured, remaining)
    left_out = sorted(measured.keys() - selected.keys())
    if left_out:
        call.context.db.notice(
            f"{count_nouns(len(left_out), 'template', 'is')} left out, of which a few epochs would "
            f"take more than half of the budget: {', '.join(left_out)}"
        )
    return call._replace(request=replace(request, rates=selected))


def _choose_effort(call: TrainCall, table: RawTable, load: Workload) -> Effort:
    """Return the effort that `cerebro.plan` shows, or less with a notice if the call is late."""
    request = call.request
    elapsed = call.elapsed_seconds
    effort = plan_effort(request, table, load, elapsed)
    if not request.rates and effort != plan_effort(request, table, load):
        call.context.db.notice(
            f"looking at the table and packing took {elapsed:.0f} s of {request.parsed.budget:g} s:"
            " fewer configurations or epochs are tried than cerebro.plan shows"
        )
    return effort


def _plan_sampling(
    call: TrainCall,
    spec: RunSpec,
    table: RawTable,
    configs: Sequence[PlannedConfig],
    prior_runs: Sequence[int],
) -> SamplingPlan | None:
    """Plan the configurations that a search samples later; None if the search samples none."""
    rule = call.request.parsed.rule
    if rule is None or rule.sampling is None:
        return None
    existing = {
        key: {"template": config.proposal.template.name, "params": config.proposal.params}
        for key, config in enumerate(configs, 1)
    }
    groups = [config.group for config in configs]
    templates = choose_templates(call.request, table)
    sampling_plan = plan_sampling(spec, rule.sampling, templates, existing, groups)
    runs = read_prior_runs(call.context.control, prior_runs)
    trials = collect_prior_trials(
        call.catalog, runs, sampling_plan.space, spec.ranking, task=table.target.task
    )
    return sampling_plan._replace(prior_trials=trials)


def build_models(
    spec: RunSpec, configs: Sequence[PlannedConfig], data: TrainingData, poll: Poll
) -> ModelInputs:
    """Build configurations with their architectures; those of a round share one architecture."""
    template_configs = {
        key: TemplateConfig(
            config.proposal.template, config.proposal.params, config.group, config.round
        )
        for key, config in enumerate(configs, 1)
    }
    built = build_configs(spec, template_configs, data.data.source, poll)
    backends = frameworks.list_frameworks(spec.arguments.backend, template_configs)
    return ModelInputs(built.configs, built.architectures, None, backends)


def _choose_evaluated_epochs(
    request: TrainRequest, effort: Effort, ranking: Ranking
) -> EvaluatedEpochs:
    """Choose the epochs to evaluate: the usual ones, and those after which a search decides."""
    usual = list_metric_epochs(effort.epochs, choose_frequency(effort.epochs))
    training = choose_training_epochs(usual)
    search = request.parsed.rule
    if search is None:
        return EvaluatedEpochs(usual, training)
    keys: dict[int, str | None] = dict.fromkeys(range(1, effort.configs + 1))
    rule = make_rule(search, keys, RuleContext(effort.epochs, usual), Replay())
    assert rule is not None
    decisive = rule.decision_epochs
    epochs = tuple(sorted({*usual, *decisive}))
    stopping = search.make_early_stopping(ranking)
    if stopping is not None and stopping.monitored.dataset == "training":
        return EvaluatedEpochs(epochs, None)
    return EvaluatedEpochs(epochs, tuple(sorted({*training, *decisive})))


def make_fit_arguments(request: TrainRequest, data: TrainingData) -> FitArguments:
    """Return the arguments of a fit that trains on the packed tables; the others are None."""
    arguments = request.arguments
    validation = data.inputs.validation
    values = {
        "source_table": data.inputs.source.table.quoted,
        "validation_table": validation.table.quoted if validation else None,
        "name": request.model,
        "seed": arguments.seed,
        "backend": arguments.backend,
        "workers": arguments.workers,
        "use_gpus": arguments.use_gpus,
        "search_params": arguments.search_params,
        "search": request.parsed.rule and arguments.search,
    }
    return fill_arguments(values)


def make_train_spec(
    request: TrainRequest, data: TrainingData, configs: Sequence[PlannedConfig], count: int
) -> TrainSpec:
    """Return the part of the run's spec that describes the call and its table.

    Args:
        count: number of configurations without those of groups, and with those sampled later.
    """
    table = data.table
    head = table.target.head
    layouts = data.group_layouts
    limits = request.parsed.cost_limits
    proposals = {key: config.proposal for key, config in enumerate(configs, 1)}
    metric = resolve_metric(MODULE, table.target.task, request.arguments.metric)
    query = request.source.query
    return TrainSpec(
        model=request.model,
        relation=request.source.quoted,
        target=table.target.column.name,
        target_type=table.target.column.type,
        task=table.target.task,
        columns=request.arguments.columns,
        types=request.parsed.types,
        split=DataSplit(
            str(table.split),
            table.split_seed,
            table.bound,
            table.rows,
            table.validation_rows,
            table.share,
        ),
        metric=metric,
        budget=request.parsed.budget,
        recipe=table.recipe.to_json(),
        classes=table.target.values,
        templates={key: proposal.template.name for key, proposal in proposals.items()},
        params={key: dict(proposal.params) for key, proposal in proposals.items()},
        weight=request.arguments.weight,
        source=data.make_source_record(),
        grouping=Grouping(
            request.arguments.group_by,
            make_group_layouts(layouts, table.groups, configs),
            layouts and layouts.block_rows,
        ),
        ensemble=choose_picks(request, table),
        counts=data.counts,
        space=request.parsed.space,
        template_names=tuple(template.name for template in choose_templates(request, table)),
        configs=count,
        measure=asdict(head.targets[0]) if isinstance(head, Floats) else None,
        max_cpu=limits and limits.max_cpu,
        max_cost=limits and limits.max_cost,
        compared=data.compared,
        final_metric=make_final_metric(metric),
        query=query and QueryRecord(query.text, query.path, query.objects),
        may_return=may_return(request.arguments),
        refit=request.refit,
        costs=request.parsed.costs,
    )
