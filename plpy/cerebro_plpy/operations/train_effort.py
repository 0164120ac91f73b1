"""The effort of a call of `cerebro.train`: rows, configurations and epochs within its budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from cerebro_plpy.configs.templates import registry
from cerebro_plpy.configs.templates.budget import (
    CONFIG_SURPLUS,
    DEFAULT_PACE,
    FEW_ROWS,
    FLOPS,
    FLOPS_PER_WEIGHT,
    MIN_EPOCHS,
    OPEN_SURPLUS,
    Effort,
    Pace,
    Workload,
    choose_max_epochs,
    choose_sample_share,
    estimate_effort,
    estimate_weights,
    round_epochs,
)
from cerebro_plpy.configs.templates.trees import boosting
from cerebro_plpy.configs.templates.trees.boosting import BOOSTING
from cerebro_plpy.database.platform_protocol import Platform, Reader
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.cost_matrix import check_costs
from cerebro_plpy.operations.refit.refit_terms import FOLDS, suits_folds
from cerebro_plpy.operations.train.train_request import (
    TrainRequest,
    check_mutable_fields,
    check_stopping_metric,
    choose_templates,
)
from cerebro_plpy.operations.train_arguments import FINAL_METRICS, may_return, resolve_metric
from cerebro_plpy.operations.train_budget import (
    FOLDS_SHARE,
    REFIT_SHARE,
    compute_deadline,
    plan_training_seconds,
)
from cerebro_plpy.operations.tree_support import has_trees
from cerebro_plpy.packing.buffer_sizes import count_useful_segments
from cerebro_plpy.preprocessing.learning.metric_check import check_metric
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.learning.recorded_table import take_share
from cerebro_plpy.preprocessing.rows.groups import LEAST_ROWS, make_group_request, read_groups
from cerebro_plpy.records import replace
from cerebro_plpy.run.request.run_request import Deadline
from cerebro_plpy.trainer_client.process import host_resources

MAX_TEMPLATE_SHARE = 0.5
"""The largest share of the time that few epochs of a template may take."""
DEFAULT_PICKS = 10
"""Picks of an ensemble if the call does not set them."""
MAX_ENSEMBLE_ROWS = 100_000
"""With more training rows there is only one pick by default: models differ less, and there are
more rows to predict."""


def make_workload(
    request: TrainRequest, platform: Platform, table: RawTable, segments: int
) -> Workload:
    """Return the work of an epoch over a table."""
    usual_workers = platform.default_workers(segments)
    useful_workers = min(usual_workers, request.arguments.configs or usual_workers)
    workers = request.arguments.workers or useful_workers
    if platform.binds_workers:
        workers = min(workers, segments)
    inputs = table.recipe.table
    load = Workload(
        training_rows=table.rows,
        validation_rows=table.validation_rows,
        weights=estimate_weights(inputs, table.target.head),
        segments=segments,
        workers=workers,
        share=request.core_share,
        max_epochs=choose_max_epochs(inputs),
        row_seconds=find_mean_rate(request),
    )
    if table.groups is None:
        return load
    return replace(
        load,
        groups=len(table.groups.rows_by_group),
        grouped_share=1 - table.groups.ungrouped_rows[0] / table.rows,
    )


def sample_to_budget(
    request: TrainRequest, db: Database, reader: Reader, table: RawTable, elapsed: float = 0.0
) -> RawTable:
    """Return a table with its groups, reduced to a sample that one epoch can train in the time.

    Args:
        elapsed: time of the budget that has been spent.

    Raises:
        InvalidParameter: the costs, the templates or the search of the call do not fit the table.
    """
    check_costs(request.module, table.target, request.parsed.costs)
    choose_templates(request, table)
    check_stopping_metric(request, table)
    check_mutable_fields(request, table)
    metric = resolve_metric(request.module, table.target.task, request.arguments.metric)
    check_metric(reader, request.module, table, metric)
    load = make_workload(request, db.platform, table, count_segments(request, db, table))
    load = replace(load, row_seconds=estimate_quickest_rate(request, table, load))
    share = choose_sample_share(load, compute_visit_seconds(request, table, elapsed))
    if share != 1:
        table = take_share(reader, table, share)
    request.template_choice.report_trees(db, table)
    return _add_groups(request, reader, table)


def estimate_quickest_rate(request: TrainRequest, table: RawTable, load: Workload) -> float:
    """Return the seconds per row of an epoch, or of the first trees if all of them take less."""
    rate = load.weights * FLOPS_PER_WEIGHT / FLOPS
    if has_trees(choose_templates(request, table)):
        head = table.target.head
        params = BOOSTING.params(head, table.rows, BOOSTING.starts[0])
        seconds = boosting.estimate_seconds(table.recipe.table, head, params, table.rows)
        rate = min(rate, seconds / table.rows)
    return rate / load.share


def _add_groups(request: TrainRequest, reader: Reader, table: RawTable) -> RawTable:
    group_by = request.arguments.group_by
    if group_by is None:
        return table
    min_rows = request.arguments.min_group_rows or LEAST_ROWS
    classes = table.target.values  # none of a regression
    group_request = make_group_request(
        table.columns, group_by, min_rows, classes, table.recipe.group
    )
    return replace(table, groups=read_groups(reader, request.module, table.parts, group_request))


def plan_effort(
    request: TrainRequest, table: RawTable, load: Workload, elapsed: float = 0.0
) -> Effort:
    """Return how many configurations and epochs fit in the budget; see `plan_training_seconds`."""
    pace = DEFAULT_PACE
    rule = request.parsed.rule
    if rule is not None:
        pace = Pace(rule.trained_share, CONFIG_SURPLUS)
        if rule.is_concurrent:
            pace = Pace(rule.trained_share, 1)
    elif may_return(request.arguments) and table.rows > FEW_ROWS:
        pace = Pace(surplus=OPEN_SURPLUS)
    visit_seconds = compute_visit_seconds(request, table, elapsed)
    arguments = request.arguments
    effort = estimate_effort(load, visit_seconds, arguments.epochs, arguments.configs, pace)
    if request.rates:
        effort = replace(effort, epochs=round_epochs(effort.epochs))
    if may_return(arguments):
        # Those that are not reached cost nothing, and without one a template has no rate.
        count = max(effort.configs, len(choose_templates(request, table)))
        effort = replace(effort, configs=count)
    return effort


def find_first_keys(templates: Mapping[int, str]) -> dict[str, int]:
    """Return the first configuration of each template that is not a baseline.

    Args:
        templates: names of templates by mst_key.

    >>> find_first_keys({1: "linear", 2: "realmlp", 3: "realmlp", 4: "tabm"})
    {'realmlp': 2, 'tabm': 4}
    """
    baselines = {template.name for template in registry.BASELINES}
    first_keys: dict[str, int] = {}
    for mst_key, template in sorted(templates.items()):
        if template not in baselines:
            first_keys.setdefault(template, mst_key)
    return first_keys


def find_mean_rate(request: TrainRequest) -> float | None:
    """Return the mean seconds per row of templates, as measured; None before that."""
    rates = [rate for rate in request.rates.values() if rate]
    return fmean(rates) if rates else None


def put_quick_first(request: TrainRequest, templates: Sequence[str]) -> TrainRequest:
    """Return a request that begins as in a short budget: nothing could be measured in time."""
    choice = request.template_choice._replace(is_short=True)
    return replace(request, template_choice=choice, rates=dict.fromkeys(templates, 0.0))


def select_rates(
    request: TrainRequest, table: RawTable, load: Workload, rates: Mapping[str, float], time: float
) -> dict[str, float]:
    """Return the rates of the templates that are worth a part of the time; 0.0 of baselines.

    A template is left out if few epochs of it would take more than half of the time, unless the
    call names it. The fastest one stays, too, if there are no trees.

    Args:
        rates: seconds per row of templates, as measured; infinite if one cannot be trained.
        time: seconds that remain.
    """
    selected = {}
    lowest = min(rates.values())
    templates = choose_templates(request, table)
    needs_network = not has_trees(templates)
    for template in templates:
        rate = rates.get(template.name, 0.0)
        epoch_seconds = replace(load, row_seconds=rate).epoch_seconds
        is_slow = epoch_seconds * MIN_EPOCHS > MAX_TEMPLATE_SHARE * time
        is_wanted = bool(request.arguments.models) or (needs_network and rate <= lowest)
        if rate < math.inf and (is_wanted or not is_slow):
            selected[template.name] = rate
    return selected


def count_segments(request: TrainRequest, db: Database, table: RawTable) -> int:
    """Return about how many segments the training rows will be distributed over."""
    distribution = db.platform.choose_distribution(db, "train", None, None)
    segments = table.rows
    if request.arguments.group_by is None and not db.platform.binds_workers:
        row_elements = table.recipe.table.elements + table.target.head.units
        segments = min(segments, count_useful_segments(table.rows, row_elements))
    return len(distribution.take_first(segments).keys)


def compute_visit_seconds(request: TrainRequest, table: RawTable, elapsed: float) -> float:
    """Return the time in which visits may begin, within the budget and the CPU limit.

    Args:
        elapsed: time of the budget that has been spent.
    """
    budget = request.parsed.budget
    elements = (table.rows + table.validation_rows) * table.recipe.table.elements
    seconds = plan_training_seconds(budget, elements, elapsed)
    if request.rates:
        seconds = budget - elapsed
    deadline = make_deadline(request, table, budget - seconds)
    limits = request.parsed.cost_limits
    if limits is None:
        return deadline.last_visit
    return min(deadline.last_visit, limits.max_cpu_seconds / host_resources.count_cores())


def make_deadline(request: TrainRequest, table: RawTable, elapsed: float) -> Deadline:
    """Return the deadline of a run that begins after some seconds of the budget."""
    return compute_deadline(
        request.parsed.budget,
        elapsed,
        choose_picks(request, table),
        table.validation_rows,
        request.arguments.metric in FINAL_METRICS,
        choose_refit_share(request, table),
        request.core_share,
    )


def choose_refit_share(request: TrainRequest, table: RawTable) -> float:
    """Return the share of the budget that is reserved for training members again."""
    if not request.may_refit:
        return 0.0
    return FOLDS_SHARE if has_choice_by_folds(request, table) else REFIT_SHARE


def has_choice_by_folds(request: TrainRequest, table: RawTable) -> bool:
    """Return whether folds of all rows choose the members of the version, if there is time."""
    if not request.may_refit or not request.can_fold or choose_picks(request, table) == 1:
        return False
    return suits_folds(table.split, table.rows + table.validation_rows)


def describe_refit(request: TrainRequest, table: RawTable) -> str:
    """Return the rows that members are trained on again, for a plan."""
    text = f"all {count_nouns(table.rows + table.validation_rows, 'row')} for the members"
    if has_choice_by_folds(request, table):
        return f"{text}, which {FOLDS} folds of them choose"
    return f"{text} of the best model"


def choose_picks(request: TrainRequest, table: RawTable) -> int:
    """Return the number of picks of the ensemble; 1 for a single configuration."""
    if request.arguments.ensemble:
        return request.arguments.ensemble
    return DEFAULT_PICKS if table.rows <= MAX_ENSEMBLE_ROWS else 1
