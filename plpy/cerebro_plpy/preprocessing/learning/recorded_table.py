"""A raw table as an earlier run learned from it, with the rows that it has now."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import Floats, Measure
from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.learning.data_checks import check_rows
from cerebro_plpy.preprocessing.learning.labels import count_unknown_targets, restore_labels
from cerebro_plpy.preprocessing.learning.raw_table import (
    RawTable,
    ValidationRows,
    make_training_part,
    make_validation_part,
    open_table,
)
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.learning.table_division import (
    make_division,
)
from cerebro_plpy.preprocessing.learning.target import (
    CLASSIFICATION,
    Target,
)
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.unknown_values import describe_unknown_values
from cerebro_plpy.preprocessing.rows.class_counts import (
    ALL_ROWS,
    UnknownTargets,
)
from cerebro_plpy.preprocessing.rows.opened_source import (
    OpenedSource,
    open_holdout,
    repeat_options,
)
from cerebro_plpy.preprocessing.rows.row_subset import both_hold, count_rows, read_labels
from cerebro_plpy.preprocessing.rows.split import (
    Sides,
    read_split,
)
from cerebro_plpy.preprocessing.rows.value_comparison import compare
from cerebro_plpy.preprocessing.rows.weight_column import (
    find_column,
    find_weight_column,
    weight_of_row,
)
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.records import replace

NO_HEAD = Floats((Measure(0.0, 1.0, 0.0, 0.0),))
"""The head of a table that no network is built for."""
HASH_VALUES = 1 << 20
"""Values of the hash that a share of the rows is chosen by."""


class Newer(NamedTuple):
    """Rows beyond a value of a column, as text; all rows if there is no value."""

    column: str
    value: str | None


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
    growing = (newer.column,) if newer else ()
    learned = Recipe.from_json(spec.recipe)
    options = repeat_options(spec, holdout_table, growing, learned.target_format)
    columns, column, opened, counts = open_table(rows, module, relation, options)
    split = read_split(module, spec.split.rule)
    holdout = open_holdout(rows, module, options, [feature.column for feature in learned.inputs])
    divided = make_division(opened, split, spec.split.bound, holdout)
    is_read = _read_rows(module, opened, newer)
    is_part = is_read != ALL_ROWS
    sides = _restrict_sides(divided.sides(spec.split.seed), is_read)
    labels = restore_labels(spec.task, learned, spec.classes)
    labels.check_column(module, column)
    has_known_label = labels.is_known(column)
    side = both_hold(sides.training, has_known_label)
    source = divided.training_source(spec.split.seed)._replace(side=side)
    weight = find_weight_column(module, columns, spec.weight)
    recipe = match_recipe(module, learned, columns, relation.spelling)
    label = labels.expression(column)
    weight_value = weight and weight_of_row(reader, module, source, weight)
    training = make_training_part(source, opened, recipe, label, weight_value)
    held_back = ValidationRows(sides.validation, holdout_table, holdout, spec.split.seed)
    target = Target(column, spec.task, NO_HEAD, spec.classes, 0)
    validation = make_validation_part(module, training, (column, labels), held_back)
    validation_rows = 0
    unknown = count_unknown_targets(reader, opened.table, is_read, labels, column)
    outside = 0  # rows on neither side
    if not is_part:
        target = target._replace(rows=count_rows(reader, training))
        validation_rows = count_rows(reader, validation)
        check_rows(module, target.rows, validation_rows, split)
        own_validation_rows = 0 if holdout else validation_rows
        outside = counts.present - target.rows - unknown.unknown - own_validation_rows
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
        unknown_values=describe_unknown_values(reader, training),
    )
    table = _record_unknown(table, unknown)
    return table if spec.split.share == 1 else take_share(reader, table, spec.split.share)


def _read_rows(module: str, opened: OpenedSource, newer: Newer | None) -> Expression:
    """Return the condition on the rows that are read: all, or those newer than a value."""
    if newer is None or newer.value is None:
        return ALL_ROWS
    column = find_column(module, opened.columns, newer.column, "since")
    return compare(column, ">", newer.value)


def _restrict_sides(sides: Sides, is_read: Expression) -> Sides:
    """Return the sides of the rows that are read."""
    if is_read == ALL_ROWS:
        return sides
    return Sides(both_hold(is_read, sides.training), both_hold(is_read, sides.validation))


def _record_unknown(table: RawTable, unknown: UnknownTargets) -> RawTable:
    """Return the table with the numbers of rows whose target is not known."""
    if table.target.task == CLASSIFICATION or table.recipe.target_format is not None:
        return replace(table, unknown=unknown.unknown, unknown_classes=unknown.examples)
    return replace(table, unused=table.unused + unknown.unknown)


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
