"""What a call of train would do: the dry run.

It looks at the table as the caller's transaction sees it, and writes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from cerebro_plpy.configs.templates.budget import Effort, Workload
from cerebro_plpy.configs.templates.candidates import Proposal
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.sessions.local_session import BudgetedSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import caller_rows
from cerebro_plpy.limits import poll_between
from cerebro_plpy.operations.fit.cost_limits import read_prices
from cerebro_plpy.operations.train.estimated_plan import STATE_BYTES, count_weights, estimate_plan
from cerebro_plpy.operations.train.group_configs import plan_configs
from cerebro_plpy.operations.train.train_request import (
    TrainRequest,
    choose_templates,
    count_segments,
    find_prior_configs,
    generate_proposals,
    make_train_request,
    make_workload,
    plan_effort,
    sample_to_budget,
)
from cerebro_plpy.operations.train_arguments import TrainArguments, read_arguments, resolve_metric
from cerebro_plpy.platform.state_tables import HOPPING
from cerebro_plpy.preprocessing.learning.data_checks import why_unused
from cerebro_plpy.preprocessing.learning.raw_table import SETTINGS, RawTable, read_table
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.recipe.recipe import FLOAT_BYTES
from cerebro_plpy.run.planning import explain_output
from cerebro_plpy.scheduling.planning.run_plan import RunPlan
from cerebro_plpy.scheduling.quota.cost_limits import Prices
from cerebro_plpy.trainer_client import settings

MODULE = "plan"
MOST_SHOWN = 10  # of the values of a category, or of classes


def explain_train(db: Database, arguments: TrainArguments) -> list[Row]:
    """Rows of what train would do, section by section."""
    catalog = Catalog(db, MODULE)
    wanted = read_arguments(db, MODULE, arguments)
    source = catalog.resolve_input(arguments.source)
    session = BudgetedSession(db, MODULE, wanted.budget, **SETTINGS)
    wait_for_source(db, session, source, read_wait_limit(db, wanted.budget))
    aim = make_train_request(catalog, session, arguments, source, wanted)
    budgeted = partial(BudgetedSession, module=MODULE, seconds=wanted.budget)
    with caller_rows(db, db.reading, SETTINGS, budgeted) as sources:
        seen = read_table(sources, MODULE, source, aim.table_options, sources.writes)
        table = sample_to_budget(aim, db, sources.session, seen, wanted.budget)
    metric = resolve_metric(MODULE, table.target.task, arguments.metric)
    load = make_workload(aim, db.platform, table, count_segments(db, table))
    effort = plan_effort(aim, table, load, wanted.budget)
    known = find_prior_configs(aim, session, table)
    tried = list(islice(generate_proposals(aim, known, table, db.check_interrupts), effort.configs))
    made = plan_configs(tried, table.groups, table.rows)
    planned = estimate_plan(db, aim, table, (load, effort), [entry.proposal for entry in made])
    rows = (
        *_data(aim, table, metric),
        *_groups(table),
        *_columns(table),
        *_configurations(choose_templates(aim, table), tried),
        *_effort(effort, load, _disk([entry.proposal for entry in made], load, table)),
        *_execution(planned, read_prices(settings.read(db))),
    )
    return [
        {**row, "data": json.dumps(row["data"])} for row in poll_between(rows, db.check_interrupts)
    ]


def _row(
    section: str,
    name: str,
    what: str,
    why: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> Row:
    return {"section": section, "name": name, "what": what, "why": why, "data": dict(data or {})}


def _data(aim: TrainRequest, table: RawTable, metric: str) -> Iterator[Row]:
    target, split = table.target, table.split
    classes = {"classes": len(target.values), "some": list(target.values[:MOST_SHOWN])}
    said = f"{len(target.values)} classes" if target.task == CLASSIFICATION else "a number"
    yield _row("model", aim.model, f"predicts {target.column.name} of {aim.source.spelling}")
    why = "as task says" if aim.arguments.task else "by its type and its different values"
    data = classes if target.task == CLASSIFICATION else {}
    yield _row(
        "target",
        target.column.name,
        f"{target.task}: {said}",
        why,
        {**data, "type": target.column.type},
    )
    if table.missing:
        yield _row(
            "rows",
            "left out",
            f"{table.missing} rows",
            "their target is NULL",
            {"rows": table.missing},
        )
    if table.unused:
        data = {"rows": table.unused}
        yield _row(
            "rows",
            "left out, too",
            f"{table.unused} rows",
            why_unused(table.split, target.task),
            data,
        )
    why = (
        "as versions before"
        if aim.table_options.settled
        else "as split says"
        if aim.arguments.split
        else "by the number of rows"
    )
    yield _row("rows", "training", f"{table.rows} rows", f"{split}, {why}", {"rows": table.rows})
    if table.weight is not None:
        yield _row(
            "rows", "weight", f"{aim.arguments.weight}", "as weight says; metrics know no weights"
        )
    if table.share < 1:
        said, why = (
            f"{table.share:.2g} of the training rows",
            "in the time of budget no epoch would go over all of them",
        )
        yield _row("rows", "sample", said, why, {"share": table.share})
    held = {"rows": table.validation_rows}
    yield _row(
        "rows", "validation", f"{table.validation_rows} rows", "models are compared by these", held
    )
    yield _row(
        "metric",
        metric,
        "decides which model is the best",
        "as metric says" if aim.arguments.metric else "usual",
    )


def _groups(table: RawTable) -> Iterator[Row]:
    groups = table.groups
    if groups is None:
        return
    for each in groups.rows_by_group:
        rows = {"rows": [each.training, each.validation]}
        said = f"{each.training} rows to train on, {each.validation} held back"
        yield _row(
            "group",
            each.value,
            said,
            "it has models of its own, tried as those of all rows are",
            rows,
        )
    trained, held = groups.ungrouped_rows
    what = f"{trained} rows to train on, {held} held back"
    few = f"{groups.small_values} values of {groups.column} with fewer than {groups.least} rows"
    why = f"NULL, and {few}: the model of all rows predicts them"
    yield _row(
        "group",
        "others",
        what,
        why,
        {"rows": list(groups.ungrouped_rows), "small": groups.small_values},
    )


def _columns(table: RawTable) -> Iterator[Row]:
    types = {column.name: column.type for column in table.columns}
    for feature in table.recipe.features:
        reasons = [feature.explanation] if feature.explanation else []
        reasons += [str(each) for each in table.leaks if each.column == feature.column]
        constants = feature.shown_constants
        data = {"type": types[feature.column], "kind": feature.kind, **constants}
        why = "; ".join(reasons) or None
        yield _row("column", feature.column, feature.description, why, data)


def _configurations(templates: Sequence[Template], tried: Sequence[Proposal]) -> Iterator[Row]:
    counts = Counter(proposal.template.name for proposal in tried)
    for template in templates:
        first = next((dict(each.params) for each in tried if each.template is template), {})
        configs = counts[template.name]
        said = f"{configs} configurations" if configs != 1 else "1 configuration"
        yield _row(
            "template", template.name, said, template.meaning, {"configs": configs, "first": first}
        )
    for key, proposal in enumerate(tried, 1):
        yield _row(
            "configuration",
            str(key),
            proposal.template.name,
            proposal.reason,
            dict(proposal.params),
        )


def _effort(effort: Effort, load: Workload, disk: int) -> Iterator[Row]:
    apart = f", for all rows and for each of {load.groups} groups," if load.groups else ""
    said = f"{effort.configs}{apart} of at most {effort.epochs} epochs each"
    why = "by the rows and the budget, as far as configs and epochs leave it open"
    yield _row(
        "effort", "configurations", said, why, {"configs": effort.configs, "epochs": effort.epochs}
    )
    where = f"{load.workers} workers over {load.segments} segments"
    yield _row(
        "effort",
        "time",
        f"about {effort.seconds:.0f} s of training",
        where,
        {"seconds": effort.seconds},
    )
    said = f"about {disk / 1e6:.0f} MB"
    yield _row(
        "effort", "disk", said, "packed rows, and states of all configurations", {"bytes": disk}
    )


def _execution(plan: RunPlan, prices: Prices | None) -> Iterator[Row]:
    """The plan of the run, one line a row, the whole of it with the first."""
    tree = explain_output.build_tree(plan, explain_output.PlanContext(prices=prices))
    (whole,) = explain_output.format_tree(tree, explain_output.JSON)
    for number, line in enumerate(explain_output.format_tree(tree, explain_output.TEXT), 1):
        yield _row(
            "execution", str(number), line, data=json.loads(whole)[0] if number == 1 else None
        )


def _disk(tried: Sequence[Proposal], load: Workload, table: RawTable) -> int:
    inputs, units = table.recipe.table, table.target.head.units
    row = (inputs.elements + units) * FLOAT_BYTES
    count = sum(count_weights(each.template, load, table) for each in tried)
    return (table.rows + table.validation_rows) * row + (HOPPING + 1) * count * STATE_BYTES
