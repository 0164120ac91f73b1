"""The request of `cerebro.train` or `cerebro.plan`, and how it divides its budget."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping

from cerebro_plpy.configs.params.early_stopping import MonitoredSeries
from cerebro_plpy.configs.params.keras_names import larger_is_better
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.search_arguments import TARGET
from cerebro_plpy.configs.search_space.search_rules import PATIENCE, PBT
from cerebro_plpy.configs.templates.candidates import (
    PriorConfig,
    PriorConfigs,
    Proposal,
    SearchGoal,
    find_distributions,
    make_search_goal,
    propose_configs,
)
from cerebro_plpy.configs.templates.clone_mutation import CloneMutation
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.configs.train_spec import REFIT_AUTO, FinalMetric
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.query_lookup import QueryLookup, look_up_query
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter, quote_text
from cerebro_plpy.limits import Poll, poll_between
from cerebro_plpy.operations import cost_matrix
from cerebro_plpy.operations.refit.refit_terms import RefitTerms
from cerebro_plpy.operations.template_choice import TemplateChoice
from cerebro_plpy.operations.train import model_name
from cerebro_plpy.operations.train.incumbent_holdout import follow_incumbent
from cerebro_plpy.operations.train.prior_configs import read_named_configs, read_similar_configs
from cerebro_plpy.operations.train_arguments import (
    FINAL_METRICS,
    METRICS,
    SEARCH_NAMES,
    ParsedArguments,
    TrainArguments,
    resolve_metric,
)
from cerebro_plpy.operations.train_budget import (
    round_share,
)
from cerebro_plpy.operations.tree_support import read_tree_support
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.rows.groups import (
    check_group_column,
)
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.split import Split, read_split
from cerebro_plpy.preprocessing.scoring.metrics import LARGER_IS_BETTER
from cerebro_plpy.preprocessing.values.columns import read_source_columns
from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.tables.models import model_registry
from cerebro_plpy.tables.models.model_registry import ModelEntry
from cerebro_plpy.tables.template_configs import choose_metric

CORE_SAMPLE_SECONDS = 0.1
"""Duration of the measurement of a core's share."""
MIN_CORE_SHARE = 0.05
SHORT_BUDGET = 30
"""Seconds in which large networks might not even be compiled, so that small ones come first."""


@dataclass(frozen=True)
class TrainRequest:
    """The arguments of a call, with everything that they name resolved."""

    module: str  # the function that was called
    arguments: TrainArguments
    parsed: ParsedArguments
    source: Relation
    model: str
    table_options: TableOptions
    seed: int
    named_configs: tuple[PriorConfig, ...]  # the configurations of `start_from`, tried first
    core_share: float  # of a core that a process had when the call began
    template_choice: TemplateChoice
    can_fold: bool  # False on Greenplum
    rates: Mapping[str, float] = field(default_factory=dict)
    """Seconds per row by template, once they are measured; of none that is left out."""

    @property
    def refit(self) -> str:
        """The members that are trained again on all rows, one of REFITS."""
        return self.arguments.refit or REFIT_AUTO

    @property
    def may_refit(self) -> bool:
        """Return whether members may be trained again on all rows."""
        terms = RefitTerms(
            refit=self.refit,
            has_holdout_table=self.table_options.holdout is not None,
            has_groups=self.arguments.group_by is not None,
            has_weights=self.arguments.weight is not None,
            has_cost_limits=self.parsed.cost_limits is not None,
        )
        return terms.is_possible


def make_train_request(
    catalog: Catalog,
    session: Session,
    arguments: TrainArguments,
    source: Relation,
    parsed: ParsedArguments,
) -> TrainRequest:
    """Resolve the arguments of a call; a model that has versions keeps the split of their rows.

    Raises:
        InvalidParameter: the split differs from that of the versions, or rows cannot be grouped
            by the column.
        UndefinedObject: see `read_named_configs`.
        DuplicateObject: see `model_name.check_default`.
    """
    module = catalog.module
    model = model_name.choose(arguments, source, parsed.target)
    if not arguments.model:
        model_name.check_default(catalog, session, model, source)
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    entry = model_registry.find_model(session, model)
    split, holdout = _resolve_split(catalog, arguments.split, model, entry)
    options = TableOptions(
        target=parsed.target,
        task=arguments.task,
        columns=arguments.columns,
        types=parsed.types,
        split=None if split is None else str(split),
        weight=arguments.weight,
        split_seed=model_name.choose_split_seed(model, arguments.seed),
        settled=False,
        holdout=holdout,
        group_by=arguments.group_by,
    )
    if entry is not None:
        options = options._replace(
            split_seed=entry.split_seed,
            settled=True,
            bound=entry.bound,
            identity=entry.identity,
            **follow_incumbent(catalog, model, parsed.target),
        )
    if arguments.group_by is not None:
        for table in filter(None, (source, holdout)):
            columns = read_source_columns(session, table)
            check_group_column(module, columns, arguments.group_by, parsed.target, table)
    return TrainRequest(
        module=module,
        arguments=_add_metric(arguments, parsed),
        parsed=parsed,
        source=source,
        model=model,
        table_options=options,
        seed=seed,
        named_configs=read_named_configs(module, session, arguments.start_from),
        core_share=measure_core_share(),
        template_choice=TemplateChoice(
            module=module,
            named_templates=parsed.templates if arguments.models else None,
            is_short=parsed.budget <= SHORT_BUDGET,
            is_counted=arguments.configs is not None,
            tree_support=read_tree_support(
                catalog.db, parsed.templates, parsed.rule, arguments.workers
            )._replace(may_sample=arguments.group_by is None),
        ),
        can_fold=not catalog.db.platform.binds_workers,
    )


def _add_metric(arguments: TrainArguments, parsed: ParsedArguments) -> TrainArguments:
    """Return the arguments with the metric that costs need, unless the call names one."""
    if parsed.costs and arguments.metric is None:
        return replace(arguments, metric=cost_matrix.METRIC)
    return arguments


def open_catalog(db: Database, module: str, arguments: TrainArguments) -> Catalog:
    """Return the names of a call; its hints have the name of a model beside a query."""
    query_arguments = ""
    if not arguments.model and arguments.target:
        query_arguments = f", model => {quote_text(arguments.target)}"
    return Catalog(db, module, takes_query=True, query_arguments=query_arguments)


def resolve_source(
    catalog: Catalog, arguments: TrainArguments, parsed: ParsedArguments, *, is_read_apart: bool
) -> Relation:
    """Return the table, view or query that a call learns from.

    Args:
        is_read_apart: another session reads its rows.
    """
    if arguments.query is None:
        return catalog.resolve_input(arguments.source, argument="source")
    limit = read_wait_limit(catalog.db, parsed.budget)
    lookup = QueryLookup(catalog.module, catalog.db.reading, limit, is_read_apart)
    return look_up_query(catalog.db, arguments.query, lookup)


def find_sources(
    catalog: Catalog, arguments: TrainArguments, source: Relation, parsed: ParsedArguments
) -> list[Relation]:
    """Return the source of a call and the table that its split holds back, if any.

    Without a split in the call, that of the model applies.
    """
    text = arguments.split
    if text is None:
        model = model_name.choose(arguments, source, parsed.target)
        rows = catalog.db.peek(sql("version.model"), model)
        if rows:
            text = rows[0]["split"]
    sources = [source]
    if text is not None:
        holdout = read_split(catalog.module, text).table
        if holdout is not None:
            sources.append(catalog.resolve_input(holdout, "split"))
    return sources


def _resolve_split(
    catalog: Catalog, text: str | None, model: str, entry: ModelEntry | None
) -> tuple[Split | None, Relation | None]:
    """Return the split of a model and the table that it holds back; None for the defaults.

    Args:
        text: the split that the call requests.

    Raises:
        InvalidParameter: the model has versions with another split.
    """
    requested = None
    holdout = None
    if text is not None:
        requested, holdout = _resolve_holdout(catalog, read_split(catalog.module, text))
    if entry is None:
        return requested, holdout
    recorded = read_split(catalog.module, entry.split)
    if requested is not None and not requested.agrees_with(recorded):
        raise InvalidParameter(
            f"{catalog.module} error: split is {text!r}, but the rows of model {model!r} are "
            f"divided by {entry.split!r}: its versions are compared on rows that none of them was "
            "trained on.",
            hint="Leave split out, or give the model another name.",
        )
    return _resolve_holdout(catalog, recorded)


def _resolve_holdout(catalog: Catalog, split: Split) -> tuple[Split, Relation | None]:
    """Return a split with the full name of the table that it holds back, and that table."""
    if split.table is None:
        return split, None
    holdout = catalog.resolve_input(split.table, "split")
    return split._replace(table=holdout.quoted), holdout


def measure_core_share() -> float:
    """Measure the share of a core that a process gets now, by working for a moment."""
    start = time.perf_counter()
    start_cpu = time.process_time()
    while time.perf_counter() - start < CORE_SAMPLE_SECONDS:
        pass
    share = (time.process_time() - start_cpu) / (time.perf_counter() - start)
    return round_share(min(1.0, max(MIN_CORE_SHARE, share)))


def choose_templates(request: TrainRequest, table: RawTable) -> tuple[Template, ...]:
    """Return the templates to try on a table, in their order; see `TemplateChoice.choose`.

    Once rates are measured, those that are twice as fast come first, unless the call names them.
    """
    templates = request.template_choice.choose(table)
    if not request.rates:
        return templates
    timed_templates = [template for template in templates if template.name in request.rates]
    if request.arguments.models:
        return tuple(timed_templates)
    rounded = {name: rate and round_share(rate) for name, rate in request.rates.items()}
    return tuple(sorted(timed_templates, key=lambda template: rounded[template.name]))


def make_final_metric(metric: str) -> FinalMetric | None:
    """Return a metric that ranks configurations at the end; None if the search goes by it."""
    if metric not in FINAL_METRICS:
        return None
    return FinalMetric(metric, metric in LARGER_IS_BETTER)


def make_ranking(request: TrainRequest, task: str) -> Ranking:
    """Return the metric that ranks configurations, which is computed on the validation rows.

    It is that of the search, if another one ranks them at the end.

    Raises:
        InvalidParameter: the call names a metric that models for the task do not have.
    """
    name = resolve_metric(request.module, task, request.arguments.metric)
    metric = METRICS[task][name]
    return Ranking("validation", metric, larger_is_better(metric))


def check_stopping_metric(request: TrainRequest, table: RawTable) -> None:
    """Check that the metrics by which a search ends are computed after each epoch.

    Raises:
        InvalidParameter: they are not.
    """
    ranking = make_ranking(request, table.target.task)
    if request.parsed.rule is None:
        return
    metric = request.arguments.metric
    if request.parsed.rule.target is not None and metric in FINAL_METRICS:
        searched = SEARCH_NAMES[ranking.metric]
        raise InvalidParameter(
            f"{request.module} error: search_params has a target, but metric is {metric!r}, which "
            f"is computed at the end only: the search goes by {searched}.",
            hint=f"Write metric => '{searched}'. Or leave the target out: "
            f"search_params => {_write_params_without_target(request)}.",
        )
    stopping = request.parsed.rule.make_early_stopping(ranking)
    if stopping is None:
        return
    names = dict.fromkeys(("loss", choose_metric(ranking.metric)))
    computed = [
        MonitoredSeries(dataset, name) for dataset in ("training", "validation") for name in names
    ]
    stopping.check(f"{request.module} error: search {PATIENCE!r}", computed)


def _write_params_without_target(request: TrainRequest) -> str:
    """Return the parameters of the search as they are typed, without the target."""
    params = json.loads(request.arguments.search_params or "{}")
    params.pop(TARGET, None)
    return quote_text(json.dumps(params))


def check_mutable_fields(request: TrainRequest, table: RawTable) -> None:
    """Check that population based training can change a field of each template.

    Raises:
        InvalidParameter: a template has no such field.
    """
    if request.parsed.rule is None or request.parsed.rule.name != PBT:
        return
    head = table.target.head
    goal = _make_search_goal(request, table)
    for template in choose_templates(request, table):
        mutation = CloneMutation(template, table.recipe.table, head)
        params = template.params(head, table.rows, {})
        if not mutation.find_mutable_fields(params, find_distributions(template, goal)):
            raise InvalidParameter(
                f"{request.module} error: search is {PBT!r}, but no field of template "
                f"{template.name!r} is left that could change while its weights and its optimizer "
                "stay as they are.",
                hint='Write a range of values, such as space => \'{"lr": [0.001, 0.1, "log"]}\'.',
            )


def _make_search_goal(request: TrainRequest, table: RawTable) -> SearchGoal:
    return make_search_goal(
        table.target.head, request.arguments.metric, table.rows, request.parsed.space
    )


def find_prior_configs(request: TrainRequest, session: Session, table: RawTable) -> PriorConfigs:
    """Return the configurations that the call names and those of models of similar tables."""
    similar = read_similar_configs(session, request.arguments, table)
    return PriorConfigs(request.named_configs, similar)


def generate_proposals(
    request: TrainRequest, prior_configs: PriorConfigs, table: RawTable, poll: Poll
) -> Iterator[Proposal]:
    """Yield the configurations to try, in their order; `poll` is called between them."""
    rule = request.parsed.rule
    proposals = propose_configs(
        choose_templates(request, table),
        _make_search_goal(request, table),
        request.seed,
        prior_configs,
        learning=bool(rule and rule.sampling and rule.sampling.learns),
    )
    return poll_between(proposals, poll)
