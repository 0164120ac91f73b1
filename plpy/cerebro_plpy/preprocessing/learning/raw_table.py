"""A raw table as it is trained on: its target, the sides of its rows, and their recipe.

All of it is read in one transaction of one session, and so from one snapshot. `plan` and `train`
share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.reading import TEXTS
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.learning import type_inference
from cerebro_plpy.preprocessing.learning.class_notices import list_untrained_classes
from cerebro_plpy.preprocessing.learning.data_checks import check_any, check_inputs, check_rows
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_columns
from cerebro_plpy.preprocessing.learning.labels import (
    Labels,
    count_unknown_targets,
    learn_labels,
    remark_holdout,
)
from cerebro_plpy.preprocessing.learning.number_targets import (
    TextTarget,
    recognize_target,
    settle_format,
)
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.learning.table_division import (
    DividedTable,
    OpenedTable,
    choose_seed,
    divide_table,
    hash_rows,
)
from cerebro_plpy.preprocessing.learning.target import (
    CLASSIFICATION,
    Target,
    check_target,
    check_task,
    find_target,
    read_target,
)
from cerebro_plpy.preprocessing.learning.target_leakage import Leak, find_leaks
from cerebro_plpy.preprocessing.learning.text_columns import find_order_remark
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.unknown_values import describe_unknown_values
from cerebro_plpy.preprocessing.remarks.column_remarks import (
    ColumnRemark,
    merge_remarks,
    remark_collations,
)
from cerebro_plpy.preprocessing.remarks.spellings import remark_classes
from cerebro_plpy.preprocessing.rows.class_counts import (
    ALL_ROWS,
    ClassCounts,
    count_targets,
)
from cerebro_plpy.preprocessing.rows.groups import Groups, find_group_form
from cerebro_plpy.preprocessing.rows.last_border import Border
from cerebro_plpy.preprocessing.rows.opened_source import (
    OpenedSource,
    TableOptions,
    open_holdout,
    open_source,
)
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset, both_hold, count_rows
from cerebro_plpy.preprocessing.rows.source import Source, keep_sample
from cerebro_plpy.preprocessing.rows.split import (
    UNDIVIDED,
    Split,
    find_dividing_column,
)
from cerebro_plpy.preprocessing.rows.weight_column import (
    find_column,
    find_weight_column,
    weight_of_row,
)
from cerebro_plpy.preprocessing.values import columns as raw
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import BYTES, TEXT_NUMBERS
from cerebro_plpy.records import dataclass, field, replace

SETTINGS = {**TEXTS, "enable_sort": "on", "enable_hashagg": "on", "jit": "off"}
"""Settings for reading a table: columns are sorted one after another, without compilation."""


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
    """Rows of some targets that are not known: classes not recorded, texts that are not numbers."""
    unknown: int = 0  # rows of all such targets
    class_counts: ClassCounts | None = None  # rows by class; None for a regression, or if unknown
    border: Border | None = None  # of a split by `last` that no earlier version has settled
    unknown_values: tuple[
        tuple[str, str], ...
    ] = ()  # columns with unknown values, and these as texts

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


class ValidationRows(NamedTuple):
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
    check_task(module, options.task)
    opened_table, text_target = _open_target(rows, module, relation, options)
    columns, column, opened, counts = opened_table
    weight = find_weight_column(module, columns, options.weight, relation)
    type_inference.check_types(module, opened.learned, options.types, relation)
    holdout = open_holdout(rows, module, options, [learned.name for learned in opened.learned])
    divided = divide_table(reader, module, opened_table, options, holdout, relation)
    seed, classes = choose_seed(reader, options, divided, column)
    if not classes.training:
        check_rows(module, 0, 0, divided.split)

    source = divided.training_source(seed)
    target = read_target(reader, module, source, text_target, classes, options, relation)
    has_classes = target.task == CLASSIFICATION
    labels = learn_labels(column, target.task, target.values)
    source = _choose_rows(rows, source, opened, (target, labels), may_sample)
    fitted = fit_columns(reader, source, opened.learned, options.types, divided.later_rows(seed))
    recipe, remarks = check_inputs(module, fitted, opened.learned, relation)
    recipe = _add_target(recipe, target, labels, find_group_form(columns, options.group_by))
    if any(feature.file_bytes for feature in recipe.inputs):
        source = source._replace(sample=None)  # has no files, which would be much larger
    label = labels.expression(column)
    leaks = find_leaks(reader, source, recipe, target.rows, label, has_classes)
    weight_value = weight and weight_of_row(reader, module, source, weight)
    training = make_training_part(source, opened, recipe, label, weight_value)
    held_back = ValidationRows(divided.sides(seed).validation, options.holdout, holdout, seed)
    validation = make_validation_part(module, training, (column, labels), held_back)
    validation_rows = _check_sides(reader, module, target, classes, validation, divided.split)
    remarks += _remark_order(reader, divided, source)
    remarks += _remark_held_back(reader, module, holdout, options, labels)
    compared = {labels.form and column.name, options.group_by, divided.split.column}
    remarks += (*remark_collations(columns, {*compared, *recipe.category_columns}),)
    table = RawTable(
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
        unused=counts.present - target.rows - (0 if holdout else validation_rows),
        remarks=merge_remarks((*_remark_target(target, classes, text_target), *remarks)),
        class_counts=classes if has_classes else None,
        border=divided.border,
        unknown_values=describe_unknown_values(reader, validation) if holdout else (),
    )
    return _count_other_texts(reader, opened, table, labels)


def _check_sides(
    reader: Reader,
    module: str,
    target: Target,
    classes: ClassCounts,
    validation: RowSubset,
    split: Split,
) -> int:
    """Return the number of validation rows; raises InvalidParameter if a side has too few rows."""
    has_classes = target.task == CLASSIFICATION
    rows = classes.comparable_rows if has_classes else count_rows(reader, validation)
    untrained = list_untrained_classes(classes) if has_classes else ()
    check_rows(module, target.rows, rows, split, untrained)
    return rows


def _add_target(recipe: Recipe, target: Target, labels: Labels, group: str | None) -> Recipe:
    """Return a recipe with the form of labels and groups."""
    return replace(
        recipe,
        label=labels.form,
        group=group,
        target_scale=target.scale,
        target_format=labels.text_format,
    )


def _count_other_texts(
    reader: Reader, opened: OpenedSource, table: RawTable, labels: Labels
) -> RawTable:
    """Return the table with the number of rows whose target is a text that is not a number."""
    column = table.target.column
    if not table.unused or column.family not in TEXT_NUMBERS:
        return table
    counts = count_unknown_targets(reader, opened.table, ALL_ROWS, labels, column)
    return replace(
        table,
        unknown=counts.unknown,
        unknown_classes=counts.examples,
        unused=table.unused - counts.unknown,
    )


def _remark_target(
    target: Target, counts: ClassCounts, text_target: TextTarget
) -> Iterator[ColumnRemark]:
    """Yield the remarks about a target; none if its note shows the views of two formats."""
    if text_target.has_two_formats and target.choice and target.choice.note:
        return
    if target.warning:
        yield ColumnRemark(target.column.name, target.warning)
    if target.task == CLASSIFICATION:
        yield from remark_classes(target.column, counts)


def _remark_order(
    reader: Reader, divided: DividedTable, source: Source
) -> tuple[ColumnRemark, ...]:
    """Return the remark about texts that divide rows by their order, if they look like dates."""
    if divided.border is None:
        return ()
    column = find_dividing_column(divided.split, divided.opened.columns)
    return find_order_remark(reader, source._replace(sample=None), column)


def _remark_held_back(
    reader: Reader,
    module: str,
    holdout: OpenedSource | None,
    options: TableOptions,
    labels: Labels,
) -> tuple[ColumnRemark, ...]:
    """Return the remark about targets of another table that are not known."""
    if holdout is None or options.holdout is None:
        return ()
    held_back = (holdout, options.holdout)
    return tuple(remark_holdout(reader, module, held_back, labels, options.target))


def open_table(
    rows: SourceRows, module: str, relation: Table, options: TableOptions
) -> OpenedTable:
    """Open a table; raises if its target cannot be trained on."""
    columns = raw.read_source_columns(rows.session, relation)
    target = find_target(module, columns, options.target, relation)
    check_target(module, target, relation)
    target = settle_format(target, options.target_format)
    opened = open_source(rows, module, relation, columns, options)
    counts = count_targets(rows.session, opened.table, target, opened.growing)
    check_any(module, target, counts, relation)
    return OpenedTable(columns, target, opened, counts)


def _open_target(
    rows: SourceRows, module: str, relation: Table, options: TableOptions
) -> tuple[OpenedTable, TextTarget]:
    """Open a table, and read its target as numbers if its texts are some."""
    opened_table = open_table(rows, module, relation, options)
    text_target = recognize_target(rows.session, opened_table, options)
    column = text_target.column
    if column != opened_table.target:
        opened = opened_table.opened
        counts = count_targets(rows.session, opened.table, column, opened.growing)
        check_any(module, column, counts, relation)
        opened_table = opened_table._replace(target=column, counts=counts)
    return opened_table, text_target


def _choose_rows(
    rows: SourceRows,
    source: Source,
    opened: OpenedSource,
    labelled: tuple[Target, Labels],
    may_sample: bool,
) -> Source:
    """Return the training rows with a usable target, if possible with a stored sample."""
    target, labels = labelled
    side = both_hold(source.side, labels.is_usable(target.column))
    source = source._replace(side=side, rows=target.rows)
    if not may_sample:
        return source
    copied = [column for column in opened.learned if column.family not in (None, BYTES)]
    return keep_sample(rows, source, [target.column, *copied])


def make_training_part(
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
        label=pack_label(label, recipe),
        order=source.hash,
        columns=opened.columns,
        weight=weight,
    )


def pack_label(label: Expression, recipe: Recipe) -> Expression:
    """Return the label of a row that has one, as it is packed."""
    if recipe.target_scale is None:
        return label
    return recipe.target_scale.label_sql(label)


def make_validation_part(
    module: str, training: RowSubset, target: tuple[RawColumn, Labels], rows: ValidationRows
) -> RowSubset:
    """Return the validation rows; columns of another table are found by name."""
    target_column, labels = target
    if rows.table is None or rows.opened is None:
        has_known_label = labels.is_known(target_column)
        return training._replace(side=both_hold(rows.side, has_known_label), weight=None)
    columns = rows.opened.columns
    column = find_column(module, columns, target_column.name, "target")
    labels.check_column(module, column, f" of {rows.table.spelling}, whose rows are held back,")
    return RowSubset(
        table=rows.opened.table,
        side=both_hold(rows.side, labels.is_known(column)),
        recipe=match_recipe(module, training.recipe, columns, rows.table.spelling),
        label=pack_label(labels.expression(column), training.recipe),
        order=hash_rows(rows.opened, UNDIVIDED, rows.seed),
        columns=columns,
    )
