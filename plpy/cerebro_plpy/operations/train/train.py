"""From a raw table to a model by name: look at the table, pack it, train configurations of
templates, keep the best.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.configs.run_spec import FitArguments, Ranking, RunSpec, list_metric_epochs
from cerebro_plpy.configs.search_space.search_rules import RuleContext
from cerebro_plpy.configs.templates.budget import Effort, choose_frequency, choose_training_epochs
from cerebro_plpy.configs.templates.layers.model_io import Floats
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.custom_settings import read_settings_for_reader
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.table_visibility import refuse_private_source
from cerebro_plpy.limits import Poll
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.operations.fit.prior_runs import collect_prior_trials, read_prior_runs
from cerebro_plpy.operations.fit.spec_request import make_request, make_rule
from cerebro_plpy.operations.train.group_configs import Entry, entries, places
from cerebro_plpy.operations.train.pack_training_data import Preparation, Prepared, packed, prepare
from cerebro_plpy.operations.train.register_version import register
from cerebro_plpy.operations.train.template_sampling import drawing
from cerebro_plpy.operations.train.train_request import (
    Aim,
    aim_of,
    asked,
    deadline,
    fitting,
    picks_of,
    planned_effort,
    predecessors_of,
    ranking_by,
    sources_of,
    templates_of,
    workload,
)
from cerebro_plpy.operations.train_arguments import (
    METRICS,
    MODULE,
    TrainArguments,
    metric_name,
    read_arguments,
)
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.preprocessing.learning.data_checks import why_unused
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, read_table
from cerebro_plpy.records import asdict, fields, replace
from cerebro_plpy.run.lifecycle import (
    OnLogged,
    RunListeners,
    ignore_run_id,
    log_completion_errors,
    reserve_run_id,
)
from cerebro_plpy.run.lifecycle import train as run_to_end
from cerebro_plpy.run.request.run_request import FitRequest, Replay
from cerebro_plpy.scheduling.schedule.scheduling_policies import FOREMOST
from cerebro_plpy.tables.template_configs import ConfigBuilder, TemplateConfig, build_configs
from cerebro_plpy.trainer_client import settings

SCHEDULE = (
    FOREMOST  # two runs with one seed have the same bits, as far as the budget does not end them
)


def train(
    db: Database,
    gd: dict[str, Any],
    arguments: TrainArguments,
    version: str,
    logged: OnLogged = ignore_run_id,
) -> list[Row]:
    """Train a model by name; the leaderboard of its run. `logged` hears of the run when it is in
    the log.
    """
    began = time.monotonic()
    catalog = Catalog(db, MODULE)
    check_transaction(db, MODULE)
    wanted = read_arguments(db, MODULE, arguments)
    settings.choose_gpus(settings.read(db), arguments.use_gpus)
    source = catalog.resolve_input(arguments.source)
    sources = sources_of(catalog, arguments, source, wanted)
    for relation in sources:
        refuse_private_source(db, MODULE, relation)
    custom = read_settings_for_reader(db, sources)
    with open_context(db, gd, [source], arguments.workers, custom) as workplace:
        aim = aim_of(catalog, workplace.control, arguments, source, wanted)
        limit = read_wait_limit(db, wanted.budget - (time.monotonic() - began))
        for each in filter(None, (source, aim.wishes.held)):
            wait_for_source(db, workplace.control, each, limit)
        run_id = reserve_run_id(db, workplace)

        def look(rows: SourceRows) -> RawTable:
            table = read_table(rows, catalog.module, source, aim.wishes, may_sample=True)
            return fitting(aim, db, rows.session, table, wanted.budget - (time.monotonic() - began))

        of = Preparation(source, db.reading, limit, aim.model)
        with packed(
            workplace, run_id, lambda: prepare(catalog, workplace, look, run_id, of)
        ) as prepared:
            tell(db, prepared.table)
            request = build_request(catalog, workplace, (aim, prepared), began, version)
            db.info(decisions(aim, prepared.table, request))
            run_to_end(db, workplace, request, None, RunListeners(logged), run_id)
    with log_completion_errors(db, gd, run_id):
        register(db, gd, run_id, began + workplace.queued_seconds + wanted.budget)
    return db.peek(sql("version.leaderboard"), run_id)


def tell(db: Database, table: RawTable) -> None:
    """Say what of the table is not learned from."""
    if table.missing:
        db.notice(f"{table.missing} rows have no {table.target.column.name}, and are left out")
    if table.unused:
        db.notice(
            f"{table.unused} more rows are left out: {why_unused(table.split, table.target.task)}"
        )
    if table.share < 1:
        db.notice(
            f"{table.rows} rows, a share of {table.share:.2g}, are trained on: in the time of "
            "budget no epoch would go over all of them"
        )
    if table.groups and table.groups.small_values:
        few = (
            f"{table.groups.small_values} values of {table.groups.column} have fewer than "
            f"{table.groups.least} rows"
        )
        db.notice(
            f"{few} to train on, or none held back: rows with them have the model of all rows"
        )
    for feature in table.recipe.features:
        if not feature.is_input:
            db.notice(f"column {feature.column} is left out: {feature.explanation}")
    for each in table.leaks:
        without = f"columns => '* except {quote_identifier(each.column)}'"
        db.notice(
            f"column {each.column}: {each}. If it is not known when predictions are made, leave it "
            f"out: {without}"
        )


def decisions(aim: Aim, table: RawTable, request: FitRequest) -> str:
    """What was decided of the table, and how to see more of it."""
    name, task, groups = table.target.column.name, table.target.task, table.groups
    apart = (
        f" for all rows and for {len(groups.rows_by_group)} groups by {groups.column}"
        if groups
        else ""
    )
    count = len(request.configs) + (
        request.search.sampling.total_remaining if request.search and request.search.sampling else 0
    )
    return (
        f"{task} of {name} by {len(table.recipe.inputs)} columns: {table.rows} rows are trained "
        f"on, and {table.validation_rows} held back ({table.split}); {count} "
        f"configurations{apart}, of at most {request.spec.epochs} epochs each, in "
        f"{aim.wanted.budget:g} s. See cerebro.plan() with the same arguments, and the arguments "
        "columns, types, split, models, space, configs, epochs and budget for more."
    )


def build_request(
    catalog: Catalog, workplace: CallContext, call: tuple[Aim, Prepared], began: float, version: str
) -> FitRequest:
    """What the run is asked: configurations of templates, and how they are trained in the time that
    is left.
    """
    aim, prepared = call
    table, source = prepared.table, prepared.data.source
    chosen = metric_name(MODULE, table.target.task, aim.arguments.metric)
    ranking = ranking_by(METRICS[table.target.task][chosen])
    left = aim.wanted.budget - (time.monotonic() - began)
    planned = planned_effort(
        aim, table, workload(aim, workplace.platform, table, len(source.segments)), left
    )
    before, evaluated = (
        predecessors_of(aim, workplace.control, table),
        _evaluated(aim, planned, ranking),
    )
    tried = entries(
        list(islice(asked(aim, before, table, workplace.check), planned.configs)),
        table.groups,
        table.rows,
    )
    spec = RunSpec(
        arguments=fit_arguments(aim, prepared),
        epochs=planned.epochs,
        frequency=choose_frequency(planned.epochs),
        evaluate_epochs=evaluated.epochs,
        training_epochs=evaluated.training,
        seed=aim.seed,
        schedule=SCHEDULE,
        dtype_policy=None,
        model_arch_table=None,
        object_table=None,
        segments=source.segments,
        source=source.spec(),
        validation=prepared.data.validation.spec() if prepared.data.validation else None,
        ranking=ranking,
        version=version,
        tables={name: found.quoted for name, found in prepared.inputs.get_relations().items()},
        train=replace(
            train_spec(aim, prepared, chosen, tried), configs=planned.configs, **prepared.stored()
        ),
    )
    known = {each.name: each for each in templates_of(aim, table)}
    models = models_of(spec, tried, prepared, workplace.check)
    if (rule := aim.wanted.rule) and rule.sampling:
        others = drawing(
            spec, rule.sampling, [*known.values()], _rows(tried), [each.group for each in tried]
        )
        runs = read_prior_runs(workplace.control, before.runs)
        earlier = collect_prior_trials(
            catalog, runs, others.space, spec.ranking, task=table.target.task
        )
        models = models._replace(drawing=others._replace(prior_trials=earlier))
        spec = replace(spec, prior_trials=earlier)
    request = make_request(catalog, workplace, spec, prepared.data, models, Replay())
    request = replace(request, build_configs=ConfigBuilder(spec, source, known, workplace.check))
    ends = deadline(
        aim.wanted.budget, time.monotonic() - began, picks_of(aim, table), table.validation_rows
    )
    return replace(request, deadline=ends)


def _rows(tried: list[Entry]) -> dict[int, Mapping[str, Any]]:
    """What makes each of the configurations that a call has chosen."""
    return {
        key: {"template": each.proposal.template.name, "params": each.proposal.params}
        for key, each in enumerate(tried, 1)
    }


def models_of(spec: RunSpec, tried: list[Entry], prepared: Prepared, poll: Poll) -> ModelInputs:
    """Configurations and their architectures; those of a round have one together."""
    wanted = {
        key: TemplateConfig(proposal.template, proposal.params, group, number)
        for key, (number, group, proposal) in enumerate(tried, 1)
    }
    found = build_configs(spec, wanted, prepared.data.source, poll)
    backends = frameworks.list_frameworks(spec.arguments.backend, wanted)
    return ModelInputs(found.configs, found.architectures, None, backends)


class Evaluated(NamedTuple):
    """The epochs that end with an evaluation, and those after which it goes over the rows that were
    trained on, too: None for all of them."""

    epochs: tuple[int, ...]
    training: tuple[int, ...] | None


def _evaluated(aim: Aim, planned: Effort, ranking: Ranking) -> Evaluated:
    """So many that a search has what it decides by, after which a configuration may have come to
    its end.
    """
    usual = list_metric_epochs(planned.epochs, choose_frequency(planned.epochs))
    keys: dict[int, str | None] = dict.fromkeys(range(1, planned.configs + 1))
    rule = make_rule(aim.wanted.rule, keys, RuleContext(planned.epochs, usual), Replay())
    asked = rule.decision_epochs if rule else ()
    stopping = aim.wanted.rule.make_early_stopping(ranking) if aim.wanted.rule else None
    watched = stopping is not None and stopping.monitored.dataset == "training"
    training = None if watched else tuple(sorted({*choose_training_epochs(usual), *asked}))
    return Evaluated(tuple(sorted({*usual, *asked})), training)


def fit_arguments(aim: Aim, prepared: Prepared) -> FitArguments:
    """The arguments of a fit call that would train on the packed tables; those that train has not
    are open.
    """
    known: Mapping[str, Any] = {
        "source_table": prepared.inputs.source.table.quoted,
        "validation_table": prepared.inputs.validation.table.quoted
        if prepared.inputs.validation
        else None,
        "name": aim.model,
        **{
            name: getattr(aim.arguments, name)
            for name in ("seed", "backend", "workers", "use_gpus", "search_params")
        },
        "search": aim.wanted.rule and aim.arguments.search,
    }
    return FitArguments(**{each.name: known.get(each.name) for each in fields(FitArguments)})


def train_spec(aim: Aim, prepared: Prepared, metric: str, tried: list[Entry]) -> TrainSpec:
    """What the log keeps of the call, and of the table."""
    table, head, allowed = prepared.table, prepared.table.target.head, aim.wanted.allowance
    keyed = dict(enumerate((each.proposal for each in tried), 1))
    return TrainSpec(
        model=aim.model,
        relation=aim.source.quoted,
        target=table.target.column.name,
        target_type=table.target.column.type,
        task=table.target.task,
        columns=aim.arguments.columns,
        types=aim.wanted.types,
        split=str(table.split),
        split_seed=table.split_seed,
        bound=table.bound,
        metric=metric,
        budget=aim.wanted.budget,
        recipe=table.recipe.to_json(),
        classes=table.target.values,
        training_rows=table.rows,
        validation_rows=table.validation_rows,
        templates={key: each.template.name for key, each in keyed.items()},
        params={key: dict(each.params) for key, each in keyed.items()},
        weight=aim.arguments.weight,
        fingerprint=prepared.fingerprint,
        ensemble=picks_of(aim, table),
        share=table.share,
        profile=prepared.profile.to_json(),
        newest=table.newest,
        hashes=prepared.hashes,
        group_by=aim.arguments.group_by,
        groups=places(prepared.grouped, table.groups, tried),
        block_rows=prepared.grouped.block_rows if prepared.grouped else None,
        counts=prepared.counts,
        space=aim.wanted.space,
        tried=tuple(each.name for each in templates_of(aim, table)),
        measure=asdict(head.targets[0]) if isinstance(head, Floats) else None,
        max_cpu=allowed and allowed.max_cpu,
        max_cost=allowed and allowed.max_cost,
        identity=table.identity,
    )
