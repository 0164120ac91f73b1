"""A raw table as it is trained on: its target, the sides of its rows, and their recipe.

All of it is read in one transaction of one session, and so from one snapshot. `plan` and `train`
share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import Floats, Measure
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.reading import TEXTS
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.errors import DatatypeMismatch
from cerebro_plpy.preprocessing.learning import type_inference
from cerebro_plpy.preprocessing.learning.class_notices import list_untrained_classes
from cerebro_plpy.preprocessing.learning.data_checks import check_any, check_inputs, check_rows
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_columns
from cerebro_plpy.preprocessing.learning.labels import is_known, is_usable, label_expression
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.learning.table_division import (
    choose_seed,
    divide_table,
    hash_rows,
    make_division,
)
from cerebro_plpy.preprocessing.learning.target import (
    CLASSIFICATION,
    Target,
    check_target,
    find_target,
    read_target,
)
from cerebro_plpy.preprocessing.learning.target_leakage import Leak, find_leaks
from cerebro_plpy.preprocessing.learning.text_columns import find_order_remark
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark
from cerebro_plpy.preprocessing.remarks.spellings import remark_classes
from cerebro_plpy.preprocessing.rows.class_counts import (
    ALL_ROWS,
    ClassCounts,
    TargetCounts,
    UnknownTargets,
    count_targets,
    count_unknown,
)
from cerebro_plpy.preprocessing.rows.groups import Groups
from cerebro_plpy.preprocessing.rows.last_border import Border
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
    find_dividing_column,
    read_split,
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
from cerebro_plpy.preprocessing.values.families import BYTES, NUMBERS
from cerebro_plpy.records import dataclass, field, replace

SETTINGS = {**TEXTS, "enable_sort": "on", "enable_hashagg": "on", "jit": "off"}
"""Settings for reading a table: columns are sorted one after another, without compilation."""
NO_HEAD = Floats((Measure(0.0, 1.0, 0.0, 0.0),))
"""The head of a table that no network is built for."""
HASH_VALUES = 1 << 20
"""Values of the hash that a share of the rows is chosen by."""


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
    remarks: tuple[ColumnRemark, ...] = ()  # about columns that may not be what they seem
    unknown_classes: Mapping[str, int] = field(default_factory=dict)
    """Rows of some classes that the recorded model does not have."""
    unknown: int = 0  # rows of all such classes
    class_counts: ClassCounts | None = None  # rows by class; None for a regression, or if unknown
    border: Border | None = None  # of a split by `last` that no earlier version has settled

    @property
    def rows(self) -> int:
        """The number of training rows."""
        return self.target.rows

    @property
    def untrained_classes(self) -> list[str]:
        """The classes of which all rows are held back."""
        return list_untrained_classes(self.class_counts) if self.class_counts else []

    @property
    def weight(self) -> Expression | None:
        """The weight of a training row, if a column has it."""
        return self.parts[0].weight


class _OpenedTable(NamedTuple):
    """A table whose target can be trained on."""

    columns: tuple[RawColumn, ...]
    target: RawColumn
    opened: OpenedSource
    counts: TargetCounts


class _ValidationRows(NamedTuple):
    """The validation rows: of this table, or of another one."""

    side: Expression
    table: Table | None  # the other table
    opened: OpenedSource | None  # its rows
    seed: int


def read_table(
    rows: SourceRows, module: str, relation: Table, options: TableOptions, may_sample: bool = False
) -> RawTable:
    """Read what is learned from all rows of a table; raises if nothing can be learned.

    Args:
        may_sample: a sample may be stored until the transaction ends, which makes this faster.
    """
    reader = rows.session
    columns, column, opened, counts = _open_table(rows, module, relation, options)
    weight = find_weight_column(module, columns, options.weight, relation)
    type_inference.check_types(module, opened.learned, options.types, relation)
    holdout = open_holdout(rows, module, options, [learned.name for learned in opened.learned])
    divided = divide_table(reader, module, opened, options, counts, holdout, relation)
    seed, classes = choose_seed(reader, options, divided, column)
    if not classes.training:
        check_rows(module, 0, 0, divided.split)

    source = divided.training_source(seed)
    target = read_target(
        reader, module, source, column, classes, options.task, relation, options.earlier_task
    )
    source = _choose_rows(rows, source, opened, target, may_sample)
    recipe, remarks = fit_columns(reader, source, opened.learned, options.types)
    if divided.border is not None:
        sorting = find_dividing_column(divided.split, columns)
        remarks += find_order_remark(reader, source._replace(sample=None), sorting)
    if any(feature.file_bytes for feature in recipe.inputs):
        source = source._replace(sample=None)  # has no files, which would be much larger
    check_inputs(module, recipe, opened.learned, relation)
    has_classes = target.task == CLASSIFICATION
    label = label_expression(column, target.task)
    leaks = find_leaks(reader, source, recipe, target.rows, label, has_classes)
    weight_value = weight and weight_of_row(reader, module, source, weight)
    training = _training_part(source, opened, recipe, label, weight_value)
    validation_side = divided.sides(seed).validation
    held_back = _ValidationRows(validation_side, options.holdout, holdout, seed)
    validation = _validation_part(module, training, target, held_back)
    validation_rows = classes.comparable_rows if has_classes else count_rows(reader, validation)
    check_rows(module, target.rows, validation_rows, divided.split)
    unused = counts.present - target.rows
    if holdout is None:
        unused -= validation_rows
    return RawTable(
        relation=relation,
        columns=columns,
        target=target,
        split=divided.split,
        split_seed=seed,
        bound=divided.bound,
        source=source,
        parts=(training, validation),
        recipe=recipe,
        validation_rows=validation_rows,
        missing=counts.rows - counts.present,
        leaks=leaks,
        newest=counts.newest,
        identity=opened.identity,
        unused=unused,
        remarks=(*_remark_target(target, classes), *remarks),
        class_counts=classes if has_classes else None,
        border=divided.border,
    )


def _remark_target(target: Target, counts: ClassCounts) -> Iterator[ColumnRemark]:
    """Yield the remarks about a target."""
    if target.task == CLASSIFICATION:
        yield from remark_classes(target.column, counts)


def _open_table(
    rows: SourceRows, module: str, relation: Table, options: TableOptions
) -> _OpenedTable:
    """Open a table; raises if its target cannot be trained on."""
    columns = raw.read_columns(rows.session, relation.oid)
    target = find_target(module, columns, options.target, relation)
    check_target(module, target, relation)
    opened = open_source(rows, module, relation, columns, options)
    counts = count_targets(rows.session, opened.table, target, opened.growing)
    check_any(module, target, counts, relation)
    return _OpenedTable(columns, target, opened, counts)


def _choose_rows(
    rows: SourceRows, source: Source, opened: OpenedSource, target: Target, may_sample: bool
) -> Source:
    """Return the training rows with a usable target, if possible with a stored sample."""
    side = both_hold(source.side, is_usable(target.column, target.task))
    source = source._replace(side=side, rows=target.rows)
    if not may_sample:
        return source
    copied = [column for column in opened.learned if column.family not in (None, BYTES)]
    return keep_sample(rows, source, [target.column, *copied])


def _training_part(
    source: Source,
    opened: OpenedSource,
    recipe: Recipe,
    label: Expression,
    weight: Expression | None,
) -> RowSubset:
    return RowSubset(
        table=source.table,
        side=source.side,
        recipe=recipe,
        label=label,
        order=source.hash,
        columns=opened.columns,
        weight=weight,
    )


def _validation_part(
    module: str, training: RowSubset, target: Target, rows: _ValidationRows
) -> RowSubset:
    """Return the validation rows; columns of another table are found by name."""
    if rows.table is None or rows.opened is None:
        has_known_label = is_known(target.column, target.task, target.values)
        return training._replace(side=both_hold(rows.side, has_known_label), weight=None)
    columns = rows.opened.columns
    column = _find_holdout_target(module, columns, target, rows.table)
    return RowSubset(
        table=rows.opened.table,
        side=both_hold(rows.side, is_known(column, target.task, target.values)),
        recipe=match_recipe(module, training.recipe, columns, rows.table.spelling),
        label=label_expression(column, target.task),
        order=hash_rows(rows.opened, UNDIVIDED, rows.seed),
        columns=columns,
    )


def _find_holdout_target(
    module: str, columns: Sequence[RawColumn], target: Target, table: Table
) -> RawColumn:
    """Return the target in the table of the validation rows; raises DatatypeMismatch."""
    column = find_column(module, columns, target.column.name, "target")
    if target.task != CLASSIFICATION and column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: column {column.name!r} of {table.spelling}, whose rows are held "
            f"back, has type {column.type}; expected a number, as {target.column.type} is.",
            hint="Cast it in a view, and name that.",
        )
    return column


def read_with_recipe(
    rows: SourceRows,
    module: str,
    relation: Table,
    spec: TrainSpec,
    holdout_table: Table | None,
    newer: Newer | None = None,
) -> RawTable:
    """Return a table as an earlier run learned from it, with the rows that it has now.

    The recipe and the sides of its rows stay. Rows newer than a value are not counted.

    Args:
        holdout_table: the table that the split names.
    """
    reader = rows.session
    options = _recorded_options(spec, holdout_table, newer)
    columns, column, opened, counts = _open_table(rows, module, relation, options)
    split = read_split(module, spec.split.rule)
    learned = Recipe.from_json(spec.recipe)
    holdout = open_holdout(rows, module, options, [feature.column for feature in learned.inputs])
    divided = make_division(opened, split, spec.split.bound, holdout)
    sides = divided.sides(spec.split.seed)
    is_read = _read_rows(module, opened, newer)
    is_part = is_read != ALL_ROWS
    if is_part:
        sides = Sides(both_hold(is_read, sides.training), both_hold(is_read, sides.validation))

    has_known_label = is_known(column, spec.task, spec.classes)
    source = divided.training_source(spec.split.seed)
    source = source._replace(side=both_hold(sides.training, has_known_label))
    weight = find_weight_column(module, columns, spec.weight)
    recipe = match_recipe(module, learned, columns, relation.spelling)
    label = label_expression(column, spec.task)
    weight_value = weight and weight_of_row(reader, module, source, weight)
    training = _training_part(source, opened, recipe, label, weight_value)
    held_back = _ValidationRows(sides.validation, holdout_table, holdout, spec.split.seed)
    target = Target(column, spec.task, NO_HEAD, spec.classes, 0)
    validation = _validation_part(module, training, target, held_back)
    validation_rows = 0
    unknown = count_unknown(reader, opened.table, is_read, label, has_known_label)
    outside = 0  # rows on neither side
    if not is_part:
        target = target._replace(rows=count_rows(reader, training))
        validation_rows = count_rows(reader, validation)
        check_rows(module, target.rows, validation_rows, split)
        outside = counts.present - target.rows - unknown.unknown
        if holdout is None:
            outside -= validation_rows
    table = RawTable(
        relation=relation,
        columns=columns,
        target=target,
        split=split,
        split_seed=spec.split.seed,
        bound=spec.split.bound,
        source=source._replace(rows=target.rows),
        parts=(training, validation),
        recipe=recipe,
        validation_rows=validation_rows,
        missing=unknown.missing,
        leaks=(),
        newest=counts.newest,
        identity=opened.identity,
        unused=outside,
    )
    table = _record_unknown(table, unknown)
    return table if spec.split.share == 1 else take_share(reader, table, spec.split.share)


def _read_rows(module: str, opened: OpenedSource, newer: Newer | None) -> Expression:
    """Return the condition on the rows that are read: all, or those newer than a value."""
    if newer is None or newer.value is None:
        return ALL_ROWS
    column = find_column(module, opened.columns, newer.column, "since")
    return compare(column, ">", newer.value)


def _record_unknown(table: RawTable, unknown: UnknownTargets) -> RawTable:
    """Return the table with the numbers of rows whose target is not known."""
    if table.target.task == CLASSIFICATION:
        return replace(table, unknown=unknown.unknown, unknown_classes=unknown.examples)
    return replace(table, unused=table.unused + unknown.unknown)


def _recorded_options(spec: TrainSpec, holdout: Table | None, newer: Newer | None) -> TableOptions:
    """Return the arguments of an earlier run that concern its table."""
    return TableOptions(
        target=spec.target,
        task=spec.task,
        columns=spec.columns,
        types=spec.types,
        split=spec.split.rule,
        weight=spec.weight,
        split_seed=spec.split.seed,
        settled=True,
        bound=spec.split.bound,
        holdout=holdout,
        group_by=spec.grouping.column,
        identity=spec.source.identity,
        growing=(newer.column,) if newer else (),
    )


def take_share(reader: Reader, table: RawTable, share: float) -> RawTable:
    """Return the table with a share of its training rows.

    Rows are chosen by the hash that orders them, so that they are the same each time. A class that
    would have no rows keeps all of them.
    """
    training, validation = table.parts
    is_chosen = Expression(
        f"(({training.order.text}) & {HASH_VALUES - 1}::bigint) < %s::bigint",
        (*training.order.values, round(share * HASH_VALUES)),
    )
    side = both_hold(training.side, is_chosen)
    if table.target.task == CLASSIFICATION:
        labels = read_labels(reader, training._replace(side=side))
        missing = sorted({*table.target.values} - labels)
        rare = f"{training.label.text} = ANY (%s::text[])"
        values = (*is_chosen.values, *training.label.values, missing)
        side = both_hold(training.side, Expression(f"({is_chosen.text}) OR {rare}", values))
    part = training._replace(side=side)
    target = table.target._replace(rows=count_rows(reader, part))
    return replace(table, parts=(part, validation), target=target, share=share)
