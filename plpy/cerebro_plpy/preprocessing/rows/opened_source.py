"""The sources of a call that learns: opened once, for the columns that it learns from or names, and
no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.preprocessing.rows.split import identity_of, read_split
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.values import columns as raw
from cerebro_plpy.preprocessing.values.columns import RawColumn


class TableOptions(NamedTuple):
    """What the caller says of a table; None where nothing is said."""

    target: str
    task: str | None
    columns: str | None
    types: Mapping[str, str]
    split: str | None
    weight: str | None
    split_seed: int
    settled: bool  # whether rows were divided by this seed before
    bound: str | None = None  # that the split had then
    held: Table | None = None  # whose rows are held back, if the split names a table
    group_by: str | None = None
    identity: tuple[str, ...] = ()  # the columns that named a row then
    others: tuple[str, ...] = ()  # columns that are read, too, if they are there
    growing: tuple[
        str, ...
    ] = ()  # columns whose largest values are kept, beside those of `columns.growing`


class OpenedSource(NamedTuple):
    """A source whose rows can be read."""

    table: str  # what stands in FROM
    columns: tuple[RawColumn, ...]  # that may be read of it
    learned: tuple[RawColumn, ...]  # those of them that are learned from
    identity: tuple[str, ...]  # the columns whose values name a row
    growing: tuple[RawColumn, ...] = ()  # those whose largest values are kept


def open_source(
    rows: SourceRows, module: str, of: tuple[Table, Sequence[RawColumn]], wishes: TableOptions
) -> OpenedSource:
    """Open a source, which has these columns, for those that a call learns from or names, that grow
    or name a row.
    """
    relation, columns = of
    column = None if wishes.split is None else read_split(module, wishes.split).column
    if column is not None:
        find_column(module, columns, column, "split")
    learned = raw.select_columns(
        module, columns, wishes.columns, {n for n in (wishes.target, column, wishes.weight) if n}
    )
    needed = {
        wishes.target,
        column,
        wishes.weight,
        wishes.group_by,
        *raw.growing_columns(columns),
        *wishes.growing,
    }
    needed |= {each.name for each in learned} | {each.name for each in columns if each.key}
    # Rows that were divided before the columns were recorded were divided by all of them.
    before = wishes.identity or (identity_of(columns) if wishes.settled else ())
    needed |= {
        each.name for each in columns if each.name in (*before, *wishes.others) and each.readable
    }
    read = tuple(each for each in columns if each.name in needed)
    identity = tuple(each.name for each in read if each.name in before) or identity_of(read)
    growing = tuple(
        each for each in read if each.name in (*raw.growing_columns(columns), *wishes.growing)
    )
    return OpenedSource(
        rows.open(relation, [each.name for each in read]), read, learned, identity, growing
    )


def open_holdout(
    rows: SourceRows, module: str, wishes: TableOptions, learned: Sequence[str]
) -> OpenedSource | None:
    """Open the table that the split names, if it names one; columns are found in it by name, the
    target among them.
    """
    if wishes.held is None:
        return None
    columns = raw.read_columns(rows.session, wishes.held.oid)
    find_column(
        module,
        columns,
        wishes.target,
        "target",
        f" in {wishes.held.spelling}, whose rows are held back",
    )
    needed = {wishes.target, wishes.group_by, *learned}
    needed |= {
        each.name for each in columns if each.key or (each.name in wishes.others and each.readable)
    }
    read = tuple(each for each in columns if each.name in needed)
    table = rows.open(wishes.held, [each.name for each in read])
    return OpenedSource(
        table, read, tuple(each for each in read if each.name in learned), identity_of(read)
    )
