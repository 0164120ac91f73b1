"""A raw table as it is trained on: its target, the sides of its rows, and their recipe.

All of it is read in one transaction of one session, and so from one snapshot. `plan` and `train`
share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import Floats, Measure
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.reading import TEXTS
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import DatatypeMismatch
from cerebro_plpy.preprocessing.learning import type_inference
from cerebro_plpy.preprocessing.learning.data_checks import check_any, check_inputs, check_rows
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.learning.labels import is_known, is_usable, label_expression
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.learning.target import (
    CLASSIFICATION,
    Target,
    check_target,
    read_target,
)
from cerebro_plpy.preprocessing.learning.target_leakage import Leak, find_leaks
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.class_counts import (
    ClassCounts,
    SideTables,
    TargetCounts,
    count_classes,
    count_targets,
    has_many_values,
)
from cerebro_plpy.preprocessing.rows.groups import Groups
from cerebro_plpy.preprocessing.rows.opened_source import (
    OpenedSource,
    TableOptions,
    open_holdout,
    open_source,
)
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset, both_hold, count_rows, read_labels
from cerebro_plpy.preprocessing.rows.source import Source, keep_sample
from cerebro_plpy.preprocessing.rows.split import (
    UNDIVIDED,
    Sides,
    Split,
    default_split,
    find_bound,
    has_copies,
    naming_columns,
    read_split,
    row_hash,
    side_conditions,
    table_with_copies,
)
from cerebro_plpy.preprocessing.rows.value_comparison import compare
from cerebro_plpy.preprocessing.rows.weight_column import (
    find_column,
    find_weight_column,
    weight_of_row,
)
from cerebro_plpy.preprocessing.values import columns as raw
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import BYTES, NUMBERS, TEXT
from cerebro_plpy.records import dataclass, replace

SETTINGS = {**TEXTS, "enable_sort": "on", "enable_hashagg": "on", "jit": "off"}
"""Settings for reading a table: columns are sorted one after another, without compilation."""
NO_HEAD = Floats((Measure(0.0, 1.0, 0.0, 0.0),))
"""The head of a table that no network is built for."""
SEEDS = 20
"""Seeds that are tried for a split with every class in training."""
PLACES = 1 << 20
"""Values of the hash that rows are drawn by."""
FEW = 10_000
"""In more rows, each class but the rarest has about its share whatever the seed is."""


class Newer(NamedTuple):
    """Rows beyond a value of a column, as text; all rows if there is no value."""

    column: str
    value: str | None


@dataclass(frozen=True)
class RawTable:
    """A raw table as it is trained on."""

    relation: Table
    columns: tuple[RawColumn, ...]
    target: Target
    split: Split
    split_seed: int
    bound: str | None  # where the last rows begin, of a split by `last`
    source: Source  # all training rows
    parts: tuple[RowSubset, RowSubset]  # training and validation rows whose target can be used
    recipe: Recipe
    validation_rows: int
    missing: int  # rows without a target
    leaks: tuple[Leak, ...]
    newest: Mapping[str, str | None]  # the largest values of columns that grow, as texts
    identity: tuple[str, ...]  # the columns whose values name a row
    share: float = 1.0  # of the training rows that the training part has
    unused: int = 0  # rows with a target that are in neither part
    groups: Groups | None = None  # groups with models of their own

    @property
    def rows(self) -> int:
        """The number of training rows."""
        return self.target.rows

    @property
    def weight(self) -> Expression | None:
        """The weight of a training row, if a column has it."""
        return self.parts[0].weight


class _DividedTable(NamedTuple):
    """A table and its split, for any seed."""

    split: Split
    opened: OpenedSource
    bound: str | None
    tables: SideTables

    def sides(self, seed: int) -> Sides:
        """Return the sides of a row."""
        return side_conditions(
            self.split, self.opened.columns, seed, self.bound, self.opened.identity
        )


class _Holdout(NamedTuple):
    """The validation rows: of this table, or of another one."""

    side: Expression
    relation: Table | None  # the other table
    opened: OpenedSource | None  # its rows
    seed: int


def read_table(
    rows: SourceRows, module: str, relation: Table, wishes: TableOptions, may_sample: bool = False
) -> RawTable:
    """Read what is learned from all rows of a table; raises if nothing can be learned.

    Args:
        may_sample: a sample may be stored until the transaction ends, which makes this faster.
    """
    reader = rows.session
    columns = raw.read_columns(reader, relation.oid)
    target = find_column(module, columns, wishes.target, "target")
    check_target(module, target)
    opened = open_source(rows, module, (relation, columns), wishes)
    count = count_targets(reader, opened.table, target, opened.growing)
    check_any(module, target, count)
    weight = find_weight_column(module, columns, wishes.weight)
    type_inference.check_types(module, opened.learned, wishes.types)
    holdout = open_holdout(rows, module, wishes, [each.name for each in opened.learned])
    divided = _divide_table(reader, module, opened, wishes, count, holdout)
    seed, classes = _choose_seed(reader, wishes, divided, target)
    if not classes.training:
        check_rows(module, 0, 0, divided.split)

    source = _training_source(divided, seed)
    goal = read_target(reader, module, source, target, classes, wishes.task)
    source, recipe, leaks = _learn(rows, module, opened, wishes, source, goal, may_sample)
    training = RowSubset(
        table=source.table,
        side=source.side,
        recipe=recipe,
        label=label_expression(target, goal.task),
        order=source.hash,
        columns=opened.columns,
        weight=weight and weight_of_row(reader, module, source, weight),
    )
    validation_side = divided.sides(seed).validation
    held = _Holdout(validation_side, wishes.held, holdout, seed)
    validation = _validation_part(module, training, goal, held)
    if goal.task == CLASSIFICATION:
        validation_rows = classes.comparable_rows
    else:
        validation_rows = count_rows(reader, validation)
    check_rows(module, goal.rows, validation_rows, divided.split)
    in_parts = goal.rows + (validation_rows if wishes.held is None else 0)
    return RawTable(
        relation=relation,
        columns=columns,
        target=goal,
        split=divided.split,
        split_seed=seed,
        bound=divided.bound,
        source=source,
        parts=(training, validation),
        recipe=recipe,
        validation_rows=validation_rows,
        missing=count.rows - count.present,
        leaks=leaks,
        newest=count.newest,
        identity=opened.identity,
        unused=count.present - in_parts,
    )


def _learn(
    rows: SourceRows,
    module: str,
    opened: OpenedSource,
    wishes: TableOptions,
    source: Source,
    goal: Target,
    may_sample: bool,
) -> tuple[Source, Recipe, tuple[Leak, ...]]:
    """Return the rows that are learned from, their recipe, and columns that give the target
    away.
    """
    side = both_hold(source.side, is_usable(goal.column, goal.task))
    source = source._replace(side=side, rows=goal.rows)
    if may_sample:
        readable = [each for each in opened.learned if each.family not in (None, BYTES)]
        source = keep_sample(rows, source, [goal.column, *readable])
    recipe = fit_recipe(rows.session, source, opened.learned, wishes.types)
    source = _with_files(source, recipe)
    check_inputs(module, recipe)
    label = label_expression(goal.column, goal.task)
    leaks = find_leaks(rows.session, source, recipe, goal.rows, label, goal.task == CLASSIFICATION)
    return source, recipe, leaks


def _divide_table(
    reader: Reader,
    module: str,
    opened: OpenedSource,
    wishes: TableOptions,
    count: TargetCounts,
    holdout: OpenedSource | None,
) -> _DividedTable:
    """Return a table with its split."""
    split = _choose_split(reader, module, opened, wishes, count)
    table = table_with_copies(opened.table, opened.columns, split, opened.identity)
    tables = SideTables(table, holdout.table if holdout else table)
    return _DividedTable(split, opened, _bound(reader, opened, split, wishes), tables)


def _training_source(divided: _DividedTable, seed: int) -> Source:
    """Return the training rows, whatever their target is."""
    opened = divided.opened
    order = _order(opened.columns, divided.split, seed, opened.identity)
    return Source(divided.tables.training, divided.sides(seed).training, order)


def _with_files(source: Source, recipe: Recipe) -> Source:
    """Return the source without its sample if the recipe reads files.

    A sample has no files, which would be many times as large as all else.
    """
    has_files = any(feature.file_bytes for feature in recipe.inputs)
    return source._replace(sample=None) if has_files else source


def _order(
    columns: Sequence[RawColumn], split: Split, seed: int, identity: Sequence[str] = ()
) -> Expression:
    """Return a bigint that orders rows by a hash of the values that name them."""
    return row_hash(
        naming_columns(columns, UNDIVIDED._replace(copies=split.copies), identity), seed + 1
    )


def _validation_part(
    module: str, training: RowSubset, target: Target, holdout: _Holdout
) -> RowSubset:
    """Return the validation rows; columns of another table are found by name."""
    if holdout.relation is None or holdout.opened is None:
        known = is_known(target.column, target.task, target.values)
        return training._replace(side=both_hold(holdout.side, known), weight=None)
    columns = holdout.opened.columns
    column = _holdout_target(module, columns, target, holdout.relation)
    return RowSubset(
        table=holdout.opened.table,
        side=both_hold(holdout.side, is_known(column, target.task, target.values)),
        recipe=match_recipe(module, training.recipe, columns, holdout.relation.spelling),
        label=label_expression(column, target.task),
        order=_order(columns, UNDIVIDED, holdout.seed),
        columns=columns,
    )


def _holdout_target(
    module: str, columns: Sequence[RawColumn], target: Target, table: Table
) -> RawColumn:
    column = find_column(module, columns, target.column.name, "target")
    if target.task != CLASSIFICATION and column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: column {column.name!r} of {table.spelling}, whose rows are held "
            f"back, has type {column.type}; expected a number, as {target.column.type} is.",
            hint="Cast it in a view, and name that.",
        )
    return column


def known_table(
    rows: SourceRows,
    module: str,
    relation: Table,
    spec: TrainSpec,
    held: Table | None,
    newer: Newer | None = None,
) -> RawTable:
    """Return a table as an earlier run learned from it, with the rows that it has now.

    The recipe and the sides of its rows stay. Rows newer than a value are not counted.

    Args:
        held: the table that the split names.
    """
    reader = rows.session
    columns = raw.read_columns(reader, relation.oid)
    target = find_column(module, columns, spec.target, "target")
    split = read_split(module, spec.split)
    check_target(module, target)
    learned = Recipe.from_json(spec.recipe)
    wishes = _recorded_options(spec, held, newer)
    opened = open_source(rows, module, (relation, columns), wishes)
    count = count_targets(reader, opened.table, target, opened.growing)
    check_any(module, target, count)
    holdout = open_holdout(rows, module, wishes, [each.column for each in learned.inputs])
    is_part = newer is not None and newer.value is not None
    known_sides = _known_sides(module, opened, spec, newer if is_part else None)

    source = Source(
        table=table_with_copies(opened.table, opened.columns, split, opened.identity),
        side=both_hold(known_sides.training, is_known(target, spec.task, spec.classes)),
        hash=_order(opened.columns, split, spec.split_seed, opened.identity),
    )
    weight = find_weight_column(module, columns, spec.weight)
    training = RowSubset(
        table=source.table,
        side=source.side,
        recipe=match_recipe(module, learned, columns, relation.spelling),
        label=label_expression(target, spec.task),
        order=source.hash,
        columns=opened.columns,
        weight=weight and weight_of_row(reader, module, source, weight),
    )
    training_rows = 0 if is_part else count_rows(reader, training)
    known_target = Target(target, spec.task, NO_HEAD, spec.classes, training_rows)
    held_back = _Holdout(known_sides.validation, held, holdout, spec.split_seed)
    validation = _validation_part(module, training, known_target, held_back)
    validation_rows = 0 if is_part else count_rows(reader, validation)
    if not is_part:
        check_rows(module, training_rows, validation_rows, split)
    table = RawTable(
        relation=relation,
        columns=columns,
        target=known_target,
        split=split,
        split_seed=spec.split_seed,
        bound=spec.bound,
        source=source._replace(rows=training_rows),
        parts=(training, validation),
        recipe=training.recipe,
        validation_rows=validation_rows,
        missing=count.rows - count.present,
        leaks=(),
        newest=count.newest,
        identity=opened.identity,
    )
    return table if spec.share == 1 else drawn(reader, table, spec.share)


def _recorded_options(spec: TrainSpec, held: Table | None, newer: Newer | None) -> TableOptions:
    """Return what an earlier run was asked about its table."""
    return TableOptions(
        target=spec.target,
        task=spec.task,
        columns=spec.columns,
        types=spec.types,
        split=spec.split,
        weight=spec.weight,
        split_seed=spec.split_seed,
        settled=True,
        bound=spec.bound,
        held=held,
        group_by=spec.group_by,
        identity=spec.identity,
        growing=(newer.column,) if newer else (),
    )


def _known_sides(module: str, opened: OpenedSource, spec: TrainSpec, newer: Newer | None) -> Sides:
    """Return the sides of rows as an earlier run divided them, of all or of newer rows."""
    split = read_split(module, spec.split)
    known = side_conditions(split, opened.columns, spec.split_seed, spec.bound, opened.identity)
    if newer is None:
        return known
    later = compare(find_column(module, opened.columns, newer.column, "since"), ">", newer.value)
    return Sides(both_hold(later, known.training), both_hold(later, known.validation))


def drawn(reader: Reader, table: RawTable, share: float) -> RawTable:
    """Return the table with a share of its training rows.

    Rows are chosen by the hash that orders them, so that they are the same each time. A class that
    would have no rows keeps all of them.
    """
    training, validation = table.parts
    chosen = Expression(
        f"(({training.order.text}) & {PLACES - 1}::bigint) < %s::bigint",
        (*training.order.values, round(share * PLACES)),
    )
    side = both_hold(training.side, chosen)
    if table.target.task == CLASSIFICATION:
        labels = read_labels(reader, training._replace(side=side))
        missing = sorted({*table.target.values} - labels)
        rare = f"{training.label.text} = ANY (%s::text[])"
        chosen_or_rare = Expression(
            f"({chosen.text}) OR {rare}", (*chosen.values, *training.label.values, missing)
        )
        side = both_hold(training.side, chosen_or_rare)
    part = training._replace(side=side)
    target = table.target._replace(rows=count_rows(reader, part))
    return replace(table, parts=(part, validation), target=target, share=share)


def _choose_split(
    reader: Reader, module: str, opened: OpenedSource, wishes: TableOptions, rows: TargetCounts
) -> Split:
    """Return the split that a call names, or the usual one.

    If many rows are equal and no key tells them apart, their copies are divided: else all rows with
    some values might be held back.
    """
    split = (
        default_split(rows.present) if wishes.split is None else read_split(module, wishes.split)
    )
    if split.kind != "random" or wishes.settled or any(each.key for each in opened.columns):
        return split
    copies = split.copies or has_copies(reader, opened.table, opened.identity, rows.rows)
    return split._replace(copies=copies)


def _bound(reader: Reader, opened: OpenedSource, split: Split, wishes: TableOptions) -> str | None:
    """Return where the last rows begin: as in earlier versions, so that no row changes its side."""
    if split.kind != "last" or wishes.bound is not None:
        return wishes.bound
    usable = f"t.{quote_identifier(wishes.target)} IS NOT NULL"
    return find_bound(reader, opened.table, split, opened.columns, usable)


def _choose_seed(
    reader: Reader, wishes: TableOptions, divided: _DividedTable, target: RawColumn
) -> tuple[int, ClassCounts]:
    """Return the seed of a split that has every class in training, and the counts by class.

    Of small tables all seeds are tried, and the one with the most even sides is taken.
    """
    many = has_many_values(reader, divided.tables.training, target)

    def count(seed: int) -> ClassCounts:
        return count_classes(reader, divided.tables, divided.sides(seed), target, many)

    first = count(wishes.split_seed)
    if wishes.settled or divided.split.kind not in ("random", "group"):
        return wishes.split_seed, first
    has_classes = target.family in (TEXT, "integer")
    best: tuple[float, int, ClassCounts] | None = None
    for seed in range(wishes.split_seed, wishes.split_seed + SEEDS):
        counts = first if best is None else count(seed)
        classes = counts if has_classes else counts.without_values()
        unevenness = classes.unevenness(divided.split.share)
        if best is None or unevenness < best[0]:
            best = unevenness, seed, counts
        if unevenness < 1 and counts.rows > FEW:
            return seed, counts
    assert best is not None
    return best[1:]
