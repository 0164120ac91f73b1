"""Dry run of `cerebro.train`: an explanation of what a call with these arguments would do.

The table is read as the caller's transaction sees it, and nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from cerebro_plpy.configs.templates.candidates import Proposal
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.sessions.local_session import BudgetedSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import caller_rows
from cerebro_plpy.limits import poll_between
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations import cost_matrix
from cerebro_plpy.operations.fit.cost_limits import read_prices
from cerebro_plpy.operations.train.estimated_plan import (
    PlannedTraining,
    describe_values,
    estimate_plan,
    format_internals,
)
from cerebro_plpy.operations.train.group_configs import plan_configs
from cerebro_plpy.operations.train.train_request import (
    TrainRequest,
    choose_templates,
    find_prior_configs,
    generate_proposals,
    make_train_request,
    open_catalog,
    resolve_source,
)
from cerebro_plpy.operations.train_arguments import (
    FINAL_METRICS,
    METRICS,
    SEARCH_NAMES,
    TrainArguments,
    read_arguments,
    resolve_metric,
)
from cerebro_plpy.operations.train_effort import (
    count_segments,
    describe_refit,
    make_workload,
    plan_effort,
    sample_to_budget,
)
from cerebro_plpy.platform.state_tables import HOPPING
from cerebro_plpy.preprocessing.learning.class_notices import (
    ClassAdvice,
    find_rare_class,
    list_single_classes,
    name_few,
)
from cerebro_plpy.preprocessing.learning.data_checks import why_unused
from cerebro_plpy.preprocessing.learning.raw_table import SETTINGS, RawTable, read_table
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.rows.last_border import describe_distance
from cerebro_plpy.scheduling.planning.run_plan import RunPlan
from cerebro_plpy.scheduling.quota.cost_limits import Prices
from cerebro_plpy.trainer_client import settings

MODULE = "plan"
MAX_CLASSES_SHOWN = 10


def explain_train(db: Database, arguments: TrainArguments) -> list[Row]:
    """Return the plan of a call of `cerebro.train`, section by section."""
    catalog = open_catalog(db, MODULE, arguments)
    parsed = read_arguments(db, MODULE, arguments)
    source = resolve_source(catalog, arguments, parsed, is_read_apart=False)
    session = BudgetedSession(db, MODULE, parsed.budget, **SETTINGS)
    wait_for_source(db, session, source, read_wait_limit(db, parsed.budget))
    request = make_train_request(catalog, session, arguments, source, parsed)
    open_session = partial(BudgetedSession, module=MODULE, seconds=parsed.budget)
    with caller_rows(db, db.reading, SETTINGS, open_session) as rows:
        table = read_table(rows, MODULE, source, request.table_options, rows.writes)
        table = sample_to_budget(request, db, rows.session, table)
    metric = resolve_metric(MODULE, table.target.task, request.arguments.metric)
    load = make_workload(request, db.platform, table, count_segments(request, db, table))
    effort = plan_effort(request, table, load)
    prior_configs = find_prior_configs(request, session, table)
    proposals = generate_proposals(request, prior_configs, table, db.check_interrupts)
    first_proposals = list(islice(proposals, effort.configs))
    configs = plan_configs(first_proposals, table.groups, table.rows)
    planned = PlannedTraining(request, table, load, effort, [config.proposal for config in configs])
    plan = estimate_plan(db, planned)
    plan_rows = (
        *_explain_data(request, table, metric),
        *_explain_groups(table),
        *_explain_columns(table),
        *_explain_configs(choose_templates(request, table), first_proposals, table),
        *_explain_effort(planned, plan),
        _explain_internals(plan, read_prices(settings.read(db))),
    )
    return [
        {**row, "data": json.dumps(row["data"])}
        for row in poll_between(plan_rows, db.check_interrupts)
    ]


def _make_row(
    section: str,
    name: str,
    text: str,
    reason: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> Row:
    return {"section": section, "name": name, "what": text, "why": reason, "data": dict(data or {})}


def _explain_data(request: TrainRequest, table: RawTable, metric: str) -> Iterator[Row]:
    target = table.target
    title = f"predicts {target.column.name} of {request.source.spelling}"
    yield _make_row("model", request.model, title)
    yield _explain_target(table)
    yield from _explain_rare_classes(request, table)
    if table.missing:
        blank = " or blank" * (table.recipe.target_format is not None)
        yield _explain_rows("left out", table.missing, f"their target is NULL{blank}")
    if table.unknown:
        values = ", ".join(map(repr, table.unknown_classes))
        reason = f"their target is not a number, such as {values}"
        yield _explain_rows("left out, not numbers", table.unknown, reason)
    if table.unused:
        reason = why_unused(table.split, target.task, table.untrained_classes)
        yield _explain_rows("left out, too", table.unused, reason)
    reason = "by the number of rows"
    if request.table_options.settled:
        reason = "as versions before"
    elif request.arguments.split:
        reason = "as split says"
    yield _explain_rows("training", table.rows, f"{table.split}, {reason}")
    yield from _explain_border(table)
    if table.weight is not None:
        weight = f"{request.arguments.weight}"
        yield _make_row("rows", "weight", weight, "argument weight; metrics ignore weights")
    if table.share < 1:
        text = f"{table.share:.2g} of the training rows"
        reason = "an epoch over all rows would take longer than the budget"
        yield _make_row("rows", "sample", text, reason, {"share": table.share})
    yield _explain_rows("validation", table.validation_rows, "models are compared by these")
    costs = request.parsed.costs
    reason = "usual"
    if costs and metric == cost_matrix.METRIC:
        reason = "usual with costs, which need good probabilities"
    elif request.arguments.metric:
        reason = "as metric says"
    text = "decides which model is the best"
    if metric in FINAL_METRICS:
        searched = SEARCH_NAMES[METRICS[target.task][metric]]
        text += f" at the end; the search goes by {searched}"
    yield _make_row("metric", metric, text, reason)
    if costs:
        text = cost_matrix.describe_prediction(costs, target.values)
        yield _make_row("metric", "costs", text, "argument costs", costs)


def _explain_rare_classes(request: TrainRequest, table: RawTable) -> Iterator[Row]:
    counts = table.class_counts
    if counts is None:
        return
    single_classes = list_single_classes(counts)
    if single_classes:
        text = f"classes with a single row: {name_few(single_classes)}"
        data = {"classes": len(single_classes)}
        yield _make_row(
            "target", "single rows", text, "predictions of them cannot be checked", data
        )
    rare_class = find_rare_class(counts)
    if rare_class:
        advice = str(ClassAdvice(request.arguments.metric, request.parsed.space)) or None
        rare = {"class": rare_class.name, "rows": rare_class.rows}
        yield _make_row("target", "rarest class", str(rare_class), advice, rare)


def _explain_border(table: RawTable) -> Iterator[Row]:
    border = table.border
    if border is None:
        return
    reason = f"the share of the rows held back is {border.share:.3g}"
    if border.is_far_from(table.split.share):
        reason = describe_distance(table.split, border)
    sorting = [remark.text for remark in table.remarks if remark.column == table.split.column]
    reason = "; ".join([reason, *sorting])
    data = {"bound": border.bound, "share": border.share}
    yield _make_row("rows", "border", f"from {border.bound} on", reason, data)
    if border.missing:
        reason = f"their {table.split.column} is NULL: they are trained on"
        yield _explain_rows("without a value", border.missing, reason)


def _explain_rows(name: str, count: int, reason: str) -> Row:
    return _make_row("rows", name, count_nouns(count, "row"), reason, {"rows": count})


def _explain_target(table: RawTable) -> Row:
    target = table.target
    text = f"{target.task}: a number"
    data: dict[str, Any] = {"type": target.column.type}
    if target.task == CLASSIFICATION:
        count = len(target.values)
        text = f"{target.task}: {count_nouns(count, 'class')}"
        data = {"classes": count, "some": list(target.values[:MAX_CLASSES_SHOWN]), **data}
    if table.recipe.target_format is not None:
        data["format"] = table.recipe.target_format
    reasons = [remark.text for remark in table.remarks if remark.column == target.column.name]
    if target.choice:
        reasons.insert(0, target.choice.reason)
    reason = "; ".join(reasons) or None
    return _make_row("target", target.column.name, text, reason, data)


def _explain_groups(table: RawTable) -> Iterator[Row]:
    groups = table.groups
    if groups is None:
        return
    for group in groups.rows_by_group:
        text = f"{count_nouns(group.training, 'row')} to train on, {group.validation} held back"
        reason = "models of its own, chosen like those of all rows"
        rows = [group.training, group.validation]
        yield _make_row("group", group.value, text, reason, {"rows": rows})
    training_rows, validation_rows = groups.ungrouped_rows
    text = f"{count_nouns(training_rows, 'row')} to train on, {validation_rows} held back"
    reason = (
        f"NULL, and {count_nouns(groups.small_values, 'value')} of {groups.column} with fewer than "
        f"{count_nouns(groups.least, 'row')}: the model of all rows predicts them"
    )
    data: dict[str, Any] = {
        "rows": list(groups.ungrouped_rows),
        "small": groups.small_values,
    }
    yield _make_row("group", "others", text, reason, data)


def _explain_columns(table: RawTable) -> Iterator[Row]:
    types = {column.name: column.type for column in table.columns}
    for feature in table.recipe.features:
        reasons = [str(leak) for leak in table.leaks if leak.column == feature.column]
        if feature.explanation:
            reasons.insert(0, feature.explanation)
        reasons += [remark.text for remark in table.remarks if remark.column == feature.column]
        reason = "; ".join(reasons) or None
        data = {"type": types[feature.column], "kind": feature.kind, **feature.shown_constants}
        yield _make_row("column", feature.column, feature.description, reason, data)


def _explain_configs(
    templates: Sequence[Template], proposals: Sequence[Proposal], table: RawTable
) -> Iterator[Row]:
    for template in templates:
        params = [dict(proposal.params) for proposal in proposals if proposal.template is template]
        text = count_nouns(len(params), "configuration")
        data = {"configs": len(params), "first": params[0] if params else {}}
        yield _make_row("template", template.name, text, template.meaning, data)
    for key, proposal in enumerate(proposals, 1):
        yield _make_row(
            "configuration",
            str(key),
            describe_values(proposal, table),
            proposal.reason,
            proposal.params,
        )


def _explain_effort(planned: PlannedTraining, plan: RunPlan) -> Iterator[Row]:
    effort = planned.effort
    load = planned.load
    groups = ""
    if load.groups:
        groups = f", for all rows and for each of {count_nouns(load.groups, 'group')},"
    text = f"{effort.configs}{groups} of at most {count_nouns(effort.epochs, 'epoch')} each"
    reason = "by the rows and the budget, unless configs or epochs are given"
    data: dict[str, Any] = {"configs": effort.configs, "epochs": effort.epochs}
    yield _make_row("effort", "configurations", text, reason, data)
    yield _explain_time(planned, plan)
    if planned.request.may_refit:
        text = describe_refit(planned.request, planned.table)
        yield _make_row("effort", "refit", text, "once they are chosen, as far as there is time")
    disk = _estimate_disk(planned)
    text = f"about {disk / 1e6:.0f} MB"
    reason = "packed rows, and states of all configurations"
    yield _make_row("effort", "disk", text, reason, {"bytes": disk})


def _estimate_disk(planned: PlannedTraining) -> int:
    copies = 2 if planned.request.may_refit else 1
    state_bytes = sum(map(planned.estimate_state_bytes, planned.proposals))
    return copies * planned.rows * planned.row_bytes + (HOPPING + 1) * state_bytes


def _explain_time(planned: PlannedTraining, plan: RunPlan) -> Row:
    """Return the row about the time of the run, which the budget ends."""
    load = planned.load
    budget = planned.request.parsed.budget
    workers = count_nouns(load.workers, "worker")
    reason = f"{workers} over {count_nouns(load.segments, 'segment')}; budget is {budget:g} s"
    if plan.seconds is None or plan.seconds > budget:
        return _make_row("effort", "time", f"{budget:g} s", reason, {"seconds": budget})
    text = f"{'at most' if plan.is_upper_bound else 'about'} {plan.seconds:.3g} s"
    return _make_row("effort", "time", text, reason, {"seconds": plan.seconds})


def _explain_internals(plan: RunPlan, prices: Prices | None) -> Row:
    """Return the row whose data is the plan of the run, as of `cerebro.plan_fit`."""
    text = "workers, states and programs, in data"
    reason = "as cerebro.plan_fit shows them"
    return _make_row("internals", "execution", text, reason, format_internals(plan, prices))
