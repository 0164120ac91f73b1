"""The rows to learn from, and samples of them.

Several statistics do not need all rows. A sample is chosen by a hash; it can be stored once, so
that not every statement reads and hashes all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import SourceRows, copied_columns, copy_item
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression

CATEGORIES_SAMPLE = 200_000
"""Rows for the values of categories, each of which must occur more than once."""
QUANTILES_SAMPLE = 20_000
HASH = "hash"
"""Name of the sample's column of hashes, unless another column has it."""
MOST_COLUMNS = 1600
"""PostgreSQL's limit of columns of a table."""


class Sample(NamedTuple):
    """A table of some of the rows of a source, with fields as in `Source`."""

    table: str
    side: Expression
    hash: Expression


class Source(NamedTuple):
    """Rows to learn from; expressions are over a row `t`."""

    table: str  # quoted
    side: Expression  # the condition that a row counts
    hash: Expression  # a bigint that depends on the values that name the row alone
    rows: int | None = None
    sample: Sample | None = None  # a stored sample of these rows

    def choose_rows(self, rows: int, size: int) -> Source:
        """Return about `size` rows, chosen by the hash; a larger choice contains a smaller.

        Other bits of the hash decide the side of a row.

        Args:
            rows: the number of rows of the source.
        """
        if rows <= size:
            return self._replace(sample=None)
        table, side, hash_ = self[:3]
        if self.sample is not None and rows == self.rows and size <= CATEGORIES_SAMPLE:
            table, side, hash_ = self.sample
        is_chosen = f"(({hash_.text}) >> 32 & 2147483647::bigint) % {max(1, rows)}::bigint < {size}"
        condition = Expression(f"{is_chosen} AND {side.text}", (*hash_.values, *side.values))
        return Source(table, condition, hash_)

    def choose_for_categories(self, rows: int) -> Source:
        """Return the rows that the values of categories are read from."""
        return self.choose_rows(rows, CATEGORIES_SAMPLE)

    def choose_for_quantiles(self, rows: int) -> Source:
        """Return the rows that quantiles are computed of."""
        return self.choose_rows(rows, QUANTILES_SAMPLE)


def keep_sample(rows: SourceRows, source: Source, columns: Sequence[RawColumn]) -> Source:
    """Return the source with a stored sample of these columns, if it has many rows.

    The sample has the rows that `Source.choose_rows` selects from the source otherwise.
    """
    if source.rows is None or source.rows <= QUANTILES_SAMPLE:
        return source
    if len(columns) >= MOST_COLUMNS:  # the table also has the hash
        return source
    names = [column.name for column in columns]
    sample = source.choose_for_categories(source.rows)
    hash_name = next(name for n in count() if (name := HASH + "_" * n) not in names)
    table = rows.name_table("sample")
    statement = sql(
        "features.keep_sample",
        output=table,
        columns=f"{sample.hash.text} AS {hash_name}, {copied_columns(names)}",
        source=sample.table,
        side=sample.side.text,
    )
    rows.session.run(statement, (*sample.hash.values, *sample.side.values))
    item = copy_item(table, [hash_name, *names])
    return source._replace(sample=Sample(item, Expression("true"), Expression(f"t.{hash_name}")))
