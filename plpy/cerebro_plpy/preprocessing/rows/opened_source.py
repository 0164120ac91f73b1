"""The sources of a call that learns, opened once for the columns that it needs and no others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.rows.split import (
    check_split_column,
    find_dividing_times,
    identity_of,
    read_split,
)
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.values import columns as raw
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.selected_columns import select_columns


class TableOptions(NamedTuple):
    """The arguments of a call that concern its table; None if an argument is missing."""

    target: str
    task: str | None
    columns: str | None
    types: Mapping[str, str]
    split: str | None
    weight: str | None
    split_seed: int
    settled: bool  # earlier versions were trained with this split and seed
    bound: str | None = None  # of that split
    holdout: Table | None = None  # has the validation rows, if the split names a table
    group_by: str | None = None
    identity: tuple[str, ...] = ()  # the columns that named a row for earlier versions
    optional: tuple[str, ...] = ()  # columns that are also read if the table has them
    growing: tuple[str, ...] = ()  # more columns whose largest values are recorded
    target_format: str | None = None  # of texts that a recorded model reads as numbers
    earlier_task: str | None = None  # of the deployed version, if it predicts the target


def repeat_options(
    spec: TrainSpec,
    holdout: Table | None,
    growing: tuple[str, ...],
    target_format: str | None = None,
) -> TableOptions:
    """Return the arguments of an earlier run that concern its table.

    Args:
        target_format: the format of the numbers in its target, from its recipe.
    """
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
        growing=growing,
        target_format=target_format,
    )


class OpenedSource(NamedTuple):
    """A source whose rows can be read."""

    table: str  # an item of FROM
    columns: tuple[RawColumn, ...]  # that can be read from it
    learned: tuple[RawColumn, ...]  # of these, the columns to learn from
    identity: tuple[str, ...]  # the columns whose values name a row
    growing: tuple[RawColumn, ...] = ()  # the columns whose largest values are recorded


def open_source(
    rows: SourceRows,
    module: str,
    relation: Table,
    columns: Sequence[RawColumn],
    options: TableOptions,
) -> OpenedSource:
    """Open a source for the columns that a call names or learns from.

    Columns that name a row, or whose values grow, are read as well.
    """
    split_column = None
    excluded = {options.target, options.weight}
    if options.split is not None:
        split = read_split(module, options.split)
        check_split_column(module, columns, split)
        split_column = split.column
        if find_dividing_times(split, columns) is None:
            excluded.add(split_column)
    learned = select_columns(module, columns, options.columns, excluded, relation)
    identity = options.identity
    if options.settled and not identity:
        # Rows that were divided before the columns were recorded were divided by all of them.
        identity = identity_of(columns)
    growing = {*raw.growing_columns(columns), *options.growing}
    required = {
        *excluded,
        split_column,
        options.group_by,
        *growing,
        *(column.name for column in learned),
    }
    readable = _readable_columns(columns, required, (*identity, *options.optional))
    recorded = tuple(column.name for column in readable if column.name in identity)
    return OpenedSource(
        table=rows.open(relation, [column.name for column in readable]),
        columns=readable,
        learned=learned,
        identity=recorded or identity_of(readable),
        growing=tuple(column for column in readable if column.name in growing),
    )


def open_holdout(
    rows: SourceRows, module: str, options: TableOptions, learned: Sequence[str]
) -> OpenedSource | None:
    """Open the table of the validation rows, if the split names one; columns are found by name."""
    table = options.holdout
    if table is None:
        return None
    columns = raw.read_columns(rows.session, table.oid)
    place = f" in {table.spelling}, whose rows are held back"
    find_column(module, columns, options.target, "target", place)
    required = {options.target, options.group_by, *learned}
    readable = _readable_columns(columns, required, options.optional)
    return OpenedSource(
        table=rows.open(table, [column.name for column in readable]),
        columns=readable,
        learned=tuple(column for column in readable if column.name in learned),
        identity=identity_of(readable),
    )


def _readable_columns(
    columns: Sequence[RawColumn], required: Collection[str | None], optional: Collection[str]
) -> tuple[RawColumn, ...]:
    """Return the columns to read: those of a key, required ones, and optional ones if allowed."""
    return tuple(
        column
        for column in columns
        if column.key or column.name in required or (column.readable and column.name in optional)
    )
