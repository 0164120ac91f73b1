"""What a call of `cerebro.train` or `cerebro.plan` is to come to, as far as its arguments say
it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

from cerebro_plpy.configs.params.early_stopping import MonitoredSeries
from cerebro_plpy.configs.params.keras_names import larger_is_better
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.search_rules import PATIENCE, PBT
from cerebro_plpy.configs.templates import registry
from cerebro_plpy.configs.templates.budget import (
    CONFIG_SURPLUS,
    DEFAULT_PACE,
    Effort,
    Pace,
    Workload,
    choose_max_epochs,
    choose_sample_share,
    estimate_effort,
    estimate_weights,
)
from cerebro_plpy.configs.templates.candidates import (
    PriorConfig,
    PriorConfigs,
    Proposal,
    find_distributions,
    make_search_goal,
    propose_configs,
)
from cerebro_plpy.configs.templates.clone_mutation import CloneMutation
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.platform_protocol import Platform, Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import Poll, poll_between
from cerebro_plpy.operations.train.incumbent_holdout import columns_before
from cerebro_plpy.operations.train.prior_configs import named, of_like_tables
from cerebro_plpy.operations.train_arguments import METRICS, TrainArguments, Wanted, metric_name
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, drawn
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.rows.groups import (
    LEAST_ROWS,
    GroupRequest,
    check_group_column,
    read_groups,
)
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.split import Split, read_split
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.request.run_request import Deadline
from cerebro_plpy.tables.models import model_registry
from cerebro_plpy.tables.template_configs import choose_metric
from cerebro_plpy.trainer_client.process import host_resources

MOMENT, LEAST_SHARE = 0.1, 0.05
"""Seconds of work that tell how much of a core there is, and what is taken for the least of it."""
AFTERWARDS, AFTERWARDS_SHARE = 2.0, 0.02
"""What comes after training takes so many seconds, for a trainer may have to start, and so much of
the budget more.
"""
MOST_AFTERWARDS = 0.4
"""Of a budget that is too short for that."""
IMPORTANCE_SHARE, LEAST_IMPORTANCE = 0.03, 0.5
"""As much of the budget more is for the importances of columns, unless that were less than so many
seconds.
"""
MEMBER_SECONDS, MOST_MEMBERS, MEMBERS_SHARE = 0.2, 8, 0.1
"""Of an ensemble: what asking a possible member takes, how many are asked at most, and in what
share of the budget.
"""
HELD_BACK_A_SECOND = 20_000
"""As many of the rows that are held back are predicted in a second, by each that is asked."""
PICKS, MOST_PICKED_ROWS = 5, 100_000
"""Picks of an ensemble where nobody says how many: of more rows, models differ less, and there are
more to predict.
"""
ENDING_SHARE = 0.04
"""Of the budget: in it no visit to train begins, and those under way may end, and be evaluated."""


@dataclass(frozen=True)
class Aim:
    """The table, the name of the model, how rows are divided, and configurations that are tried
    first.

    `module` is the function that was called; `core` is how much of a core a process had when the
    call began.
    """

    module: str
    arguments: TrainArguments
    wanted: Wanted
    source: Relation
    model: str
    wishes: TableOptions
    seed: int
    predecessors: tuple[PriorConfig, ...]
    core: float


def aim_of(
    catalog: Catalog, session: Session, arguments: TrainArguments, source: Relation, wanted: Wanted
) -> Aim:
    """What a call is to come to; a name that has versions divides rows as it did for them."""
    module = catalog.module
    model = arguments.model or f"{source.name}_{wanted.target}"
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    known = model_registry.find_model(session, model)
    given = (
        None if arguments.split is None else _resolved(catalog, read_split(module, arguments.split))
    )
    if (
        known
        and given is not None
        and given[0] != read_split(module, known.split)._replace(copies=given[0].copies)
    ):
        raise InvalidParameter(
            f"{module} error: split is {arguments.split!r}, but the rows of model {model!r} are "
            f"divided by {known.split!r}: its versions are compared on rows that none of them was "
            "trained on.",
            hint="Leave split out, or give the model another name.",
        )
    split, held = (
        _resolved(catalog, read_split(module, known.split)) if known else given or (None, None)
    )
    wishes = TableOptions(
        target=wanted.target,
        task=arguments.task,
        columns=arguments.columns,
        types=wanted.types,
        split=None if split is None else str(split),
        weight=arguments.weight,
        split_seed=known.split_seed if known else seed,
        settled=bool(known),
        bound=known.bound if known else None,
        held=held,
        group_by=arguments.group_by,
        identity=known.identity if known else (),
        others=columns_before(catalog, model) if known else (),
    )
    if arguments.group_by is not None:
        tables = [source, *([held] if held else [])]
        for each in tables:
            check_group_column(
                module, read_columns(session, each.oid), arguments.group_by, wanted.target
            )
    first = named(module, session, arguments.start_from)
    return Aim(module, arguments, wanted, source, model, wishes, seed, first, core_share())


def sources_of(
    catalog: Catalog, arguments: TrainArguments, source: Relation, wanted: Wanted
) -> list[Relation]:
    """Return the source of a call, and the table whose rows it holds back, if its split or its
    model's names one.
    """
    text = arguments.split
    if text is None:
        rows = catalog.db.peek(
            sql("version.model"), arguments.model or f"{source.name}_{wanted.target}"
        )
        text = rows[0]["split"] if rows else None
    held = None if text is None else read_split(catalog.module, text).table
    return [source, *([catalog.resolve_input(held, "split")] if held else [])]


def _resolved(catalog: Catalog, split: Split) -> tuple[Split, Relation | None]:
    """The split with the full name of the table that it holds back, and that table."""
    if split.table is None:
        return split, None
    found = catalog.resolve_input(split.table, "split")
    return split._replace(table=found.quoted), found


def workload(aim: Aim, platform: Platform, table: RawTable, segments: int) -> Workload:
    """What an epoch goes over."""
    usual = platform.default_workers(segments)
    workers = min(aim.arguments.workers or min(usual, aim.arguments.configs or usual), segments)
    inputs = table.recipe.table
    weights = estimate_weights(inputs, table.target.head)
    rows, groups = (table.rows, table.validation_rows), table.groups
    grouped = (0, 0.0)
    if groups:
        grouped = (len(groups.rows_by_group), 1 - groups.ungrouped_rows[0] / table.rows)
    return Workload(
        *rows, weights, segments, workers, aim.core, choose_max_epochs(inputs), *grouped
    )


def core_share() -> float:
    """How much of a core a process gets now: of a moment of work, the part in which it was let
    work.
    """
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < MOMENT:
        pass
    got = (time.process_time() - used) / (time.perf_counter() - began)
    return min(1.0, max(LEAST_SHARE, got))


def fitting(aim: Aim, db: Database, reader: Reader, table: RawTable, seconds: float) -> RawTable:
    """The table, or as much of it as one epoch can go over where so many seconds are left, with its
    groups; see also `templates_of`."""
    templates_of(aim, table)
    check_watched(aim, table)
    check_bred(aim, table)
    load = workload(aim, db.platform, table, segments_of(db, table))
    share = choose_sample_share(load, visit_seconds(aim, table, seconds))
    return _with_groups(aim, reader, table if share == 1 else drawn(reader, table, share))


def _with_groups(aim: Aim, reader: Reader, table: RawTable) -> RawTable:
    asked = aim.arguments
    if asked.group_by is None:
        return table
    classes = table.target.values if table.target.task == CLASSIFICATION else ()
    families = {column.name: column.family for column in table.columns}
    wanted = GroupRequest(
        asked.group_by, asked.min_group_rows or LEAST_ROWS, classes, families[asked.group_by]
    )
    return replace(table, groups=read_groups(reader, aim.module, table.parts, wanted))


def templates_of(aim: Aim, table: RawTable) -> tuple[Template, ...]:
    """The templates that are tried on a table; raises InvalidParameter where one is named that is
    for others.
    """
    inputs = table.recipe.table
    if not aim.arguments.models:
        return registry.choose_templates(inputs)
    found = registry.select_suitable(aim.wanted.templates, inputs)
    for each in aim.wanted.templates:
        if each not in found:
            raise InvalidParameter(
                f"models names template {each.name!r}, which is for columns of kind {each.kind!r}; "
                "there is none.",
                hint="See what columns are taken for: cerebro.plan. A column of a fitting type "
                "may be made one:"
                f' types => \'{{"column": "{each.kind}"}}\'.',
            )
        each.architecture(
            inputs, table.target.head, each.params(table.target.head, table.rows, {})
        )  # where it fits
    return found


def ranking_by(metric: str) -> Ranking:
    """How configurations are compared: by rows that none of them was trained on."""
    return Ranking("validation", metric, larger_is_better(metric))


def check_watched(aim: Aim, table: RawTable) -> None:
    """Raises InvalidParameter where a search by patience watches what is not computed of
    configurations.
    """
    metric = METRICS[table.target.task][
        metric_name(aim.module, table.target.task, aim.arguments.metric)
    ]
    stopping = aim.wanted.rule and aim.wanted.rule.make_early_stopping(ranking_by(metric))
    if stopping:
        names = dict.fromkeys(("loss", choose_metric(metric)))
        computed = [
            MonitoredSeries(dataset, name)
            for dataset in ("training", "validation")
            for name in names
        ]
        stopping.check(f"{aim.module} error: search {PATIENCE!r}", computed)


def check_bred(aim: Aim, table: RawTable) -> None:
    """Raises InvalidParameter where no field could move of what population based training makes
    clones of.
    """
    if aim.wanted.rule is None or aim.wanted.rule.name != PBT:
        return
    head, inputs = table.target.head, table.recipe.table
    searched = make_search_goal(head, aim.arguments.metric, table.rows, aim.wanted.space)
    for each in templates_of(aim, table):
        usual = each.params(head, table.rows, {})
        if not CloneMutation(each, inputs, head).find_mutable_fields(
            usual, find_distributions(each, searched)
        ):
            raise InvalidParameter(
                f"{aim.module} error: search is {PBT!r}, but no field of template {each.name!r} is "
                "left that could change while its weights and its optimizer stay as they are.",
                hint='Give one of them a range, such as space => \'{"lr": [0.001, 0.1, "log"]}\'.',
            )


def planned_effort(aim: Aim, table: RawTable, load: Workload, seconds: float) -> Effort:
    """How many configurations are tried, and for how long, where so many seconds are left."""
    asked, rule = aim.arguments, aim.wanted.rule
    pace = (
        Pace(rule.trained_share, 1 if rule.is_concurrent else CONFIG_SURPLUS)
        if rule
        else DEFAULT_PACE
    )
    return estimate_effort(
        load, visit_seconds(aim, table, seconds), asked.epochs, asked.configs, pace
    )


def segments_of(db: Database, table: RawTable) -> int:
    """Over how many segments the training rows will lie."""
    return len(db.platform.choose_distribution(db, "train", None, None).take_first(table.rows).keys)


def visit_seconds(aim: Aim, table: RawTable, seconds: float) -> float:
    """How long visits may begin where so many seconds of the budget are left: less where so much
    time of all cores is more than the run may use."""
    spent, allowed = aim.wanted.budget - seconds, aim.wanted.allowance
    left = deadline(
        aim.wanted.budget, spent, picks_of(aim, table), table.validation_rows
    ).last_visit
    return min(left, allowed.max_cpu_seconds / host_resources.count_cores()) if allowed else left


def picks_of(aim: Aim, table: RawTable) -> int:
    """Of how many picks the version is made."""
    return aim.arguments.ensemble or (PICKS if table.rows <= MOST_PICKED_ROWS else 1)


def most_members(picks: int, budget: float, held_back: int) -> int:
    """Of how many configurations an ensemble of so many picks may be made, over so many rows that
    are held back.

    >>> (most_members(1, 300.0, 100),
    ...  [most_members(5, budget, 10_000) for budget in (300.0, 30.0, 5.0)])
    (1, [8, 4, 2])
    """
    if picks == 1:
        return 1
    return max(2, min(MOST_MEMBERS, int(MEMBERS_SHARE * budget / _member_seconds(held_back))))


def _member_seconds(held_back: int) -> float:
    return MEMBER_SECONDS + held_back / HELD_BACK_A_SECOND


def importance_share(budget: float) -> float:
    """How many seconds of a budget are set aside for the importances of columns; they may have what
    else is left of it.

    >>> importance_share(300.0), importance_share(10.0)
    (9.0, 0.0)
    """
    share = IMPORTANCE_SHARE * budget
    return share if share >= LEAST_IMPORTANCE else 0.0


def deadline(budget: float, spent: float, picks: int = 1, held_back: int = 0) -> Deadline:
    """When a run ends at last that begins after so much of its budget was spent.

    >>> deadline(300.0, 20.0)
    Deadline(last_visit=251.0, cancel=263.0, end=272.0)
    >>> deadline(5.0, 1.0)
    Deadline(last_visit=1.8, cancel=2.0, end=2.0)
    >>> deadline(300.0, 20.0, picks=5, held_back=10_000)
    Deadline(last_visit=245.4, cancel=257.4, end=272.0)
    """
    members = (
        _member_seconds(held_back) * most_members(picks, budget, held_back) if picks > 1 else 0.0
    )
    least = AFTERWARDS + AFTERWARDS_SHARE * budget
    set_aside = (least + importance_share(budget) + members, least)
    afterwards, least = (min(seconds, MOST_AFTERWARDS * budget) for seconds in set_aside)
    moments = (budget * (1 - ENDING_SHARE) - afterwards, budget - afterwards, budget - least)
    return Deadline(*(max(0.0, round(moment - spent, 3)) for moment in moments))


def predecessors_of(aim: Aim, session: Session, table: RawTable) -> PriorConfigs:
    """Configurations that did well before: those that the call names, and those of tables like this
    one.
    """
    return PriorConfigs(aim.predecessors, of_like_tables(session, aim.arguments, table))


def asked(aim: Aim, known: PriorConfigs, table: RawTable, poll: Poll) -> Iterator[Proposal]:
    """The configurations that are tried, in their order; `poll` is called between them."""
    searched = make_search_goal(
        table.target.head, aim.arguments.metric, table.rows, aim.wanted.space
    )
    rule = aim.wanted.rule
    learning = bool(rule and rule.sampling and rule.sampling.learns)
    return poll_between(
        propose_configs(templates_of(aim, table), searched, aim.seed, known, learning=learning),
        poll,
    )
