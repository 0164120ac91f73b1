"""The division of a table into training and validation rows: its split, and the split's seed."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.preprocessing.rows.class_counts import (
    ClassCounts,
    SideTables,
    TargetCounts,
    count_classes,
    has_many_values,
)
from cerebro_plpy.preprocessing.rows.last_border import Border, find_border
from cerebro_plpy.preprocessing.rows.opened_source import OpenedSource, TableOptions
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.split import (
    UNDIVIDED,
    Sides,
    Split,
    default_split,
    divide_by_value,
    has_copies,
    naming_columns,
    read_split,
    row_hash,
    side_conditions,
    table_with_copies,
)
from cerebro_plpy.preprocessing.rows.split_words import choose_words
from cerebro_plpy.preprocessing.values.column_values import known_value
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import TEXTS

SEEDS = 20
"""Seeds that are tried for a split with every class in training."""
MANY_ROWS = 10_000
"""With more rows, each class but the rarest has about its share whatever the seed is."""


class OpenedTable(NamedTuple):
    """A table whose target can be trained on."""

    columns: tuple[RawColumn, ...]
    target: RawColumn
    opened: OpenedSource
    counts: TargetCounts


class DividedTable(NamedTuple):
    """A table and its split, for any seed."""

    split: Split
    opened: OpenedSource
    bound: str | None
    tables: SideTables
    border: Border | None = None  # of a split by `last` that no earlier version has settled

    def sides(self, seed: int) -> Sides:
        """Return the sides of a row."""
        return side_conditions(
            self.split, self.opened.columns, seed, self.bound, self.opened.identity
        )

    def training_source(self, seed: int) -> Source:
        """Return the training rows, whatever their target is."""
        order = hash_rows(self.opened, self.split, seed)
        return Source(self.tables.training, self.sides(seed).training, order)

    def later_rows(self, seed: int) -> Source | None:
        """Return the rows held back, whatever their target is, if they are the last ones."""
        if self.split.kind != "last":
            return None
        order = hash_rows(self.opened, self.split, seed)
        return Source(self.tables.validation, self.sides(seed).validation, order)


def divide_table(
    reader: Reader,
    module: str,
    opened_table: OpenedTable,
    options: TableOptions,
    holdout: OpenedSource | None,
    table: Table,
) -> DividedTable:
    """Return a table with the split that a call names, or with the usual one.

    Args:
        holdout: the table of the validation rows, if it is another one.
        table: the source of the call, for hints.
    """
    opened = opened_table.opened
    split = _choose_split(reader, module, opened, options, opened_table.counts)
    if split.kind == "column" and split.words is None and not options.settled:
        (column,) = (column for column in opened.columns if column.name == split.column)
        words = choose_words(
            reader, module, opened.table, column, table, opened.columns, options.columns
        )
        split = split._replace(words=words)
    if split.kind != "last" or options.bound is not None:
        # Of earlier versions, so that no row changes sides.
        return make_division(opened, split, options.bound, holdout)
    usable = f"{known_value(opened_table.target)} IS NOT NULL"
    border = find_border(reader, module, opened, split, usable)
    return make_division(opened, split, border.bound, holdout)._replace(border=border)


def make_division(
    opened: OpenedSource, split: Split, bound: str | None, holdout: OpenedSource | None
) -> DividedTable:
    """Return a table with its split.

    Args:
        bound: the value where the last rows begin, of a split by `last`.
        holdout: the table of the validation rows, if it is another one.
    """
    table = table_with_copies(opened.table, opened.columns, split, opened.identity)
    tables = SideTables(table, holdout.table if holdout else table)
    return DividedTable(split, opened, bound, tables)


def hash_rows(opened: OpenedSource, split: Split, seed: int) -> Expression:
    """Return a bigint that orders rows by a hash of the values that name them."""
    order = UNDIVIDED._replace(copies=split.copies)
    return row_hash(naming_columns(opened.columns, order, opened.identity), seed + 1)


def choose_seed(
    reader: Reader, options: TableOptions, divided: DividedTable, target: RawColumn
) -> tuple[int, ClassCounts]:
    """Return the seed of a split that has every class in training, and the counts by class.

    For small tables, all seeds are tried, and the one with the most even sides is chosen.
    """
    many = has_many_values(reader, divided.tables.training, target)

    def count(seed: int) -> ClassCounts:
        return count_classes(reader, divided.tables, divided.sides(seed), target, many)

    first_seed = options.split_seed
    first_counts = count(first_seed)
    if options.settled or divided.split.kind not in ("random", "group"):
        return first_seed, first_counts
    has_classes = target.family in (*TEXTS, "integer")
    best: tuple[float, int, ClassCounts] | None = None
    for seed in range(first_seed, first_seed + SEEDS):
        counts = first_counts if best is None else count(seed)
        classes = counts if has_classes else counts.without_values()
        unevenness = classes.unevenness(divided.split.share)
        if best is None or unevenness < best[0]:
            best = (unevenness, seed, counts)
        if unevenness < 1 and counts.rows > MANY_ROWS:
            return seed, counts
    assert best is not None
    return best[1:]


def _choose_split(
    reader: Reader, module: str, opened: OpenedSource, options: TableOptions, counts: TargetCounts
) -> Split:
    """Return the split that a call names, or the usual one.

    If many rows are equal and no key distinguishes them, copies are divided one by one. Otherwise
    all rows with some values might be held back.
    """
    if options.split is None:
        split = default_split(counts.present)
    else:
        split = read_split(module, options.split)
    if not options.settled:
        split = divide_by_value(split, opened.columns)
    has_key = any(column.key for column in opened.columns)
    if split.kind != "random" or options.settled or has_key:
        return split
    copies = split.copies or has_copies(reader, opened.table, opened.identity, counts.rows)
    return split._replace(copies=copies)
