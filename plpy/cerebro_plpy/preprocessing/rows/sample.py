"""A sample of the rows of a source, stored for all statistics that do not need all rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import SourceRows, copied_columns, copy_item
from cerebro_plpy.preprocessing.rows import statistics
from cerebro_plpy.preprocessing.rows.statistics import Sample, Source
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression

HASH = "hash"
"""Name of the sample's column of hashes, unless another column has it."""
MOST_COLUMNS = 1600
"""PostgreSQL's limit of columns of a table."""


def keep_sample(rows: SourceRows, source: Source, columns: Sequence[RawColumn]) -> Source:
    """Return the source with a stored sample of these columns, if it has many rows.

    The rows are those that `Source.few` selects otherwise; but then each statement reads and hashes
    all rows. A table needs room for the columns and the hash.
    """
    if source.rows is None or source.rows <= statistics.QUANTILES_SAMPLE:
        return source
    if len(columns) >= MOST_COLUMNS:
        return source
    names = [column.name for column in columns]
    few = source.few(source.rows, statistics.SAMPLE)
    hash_name = next(name for n in count() if (name := HASH + "_" * n) not in names)
    table = rows.name_table("sample")
    statement = sql(
        "features.keep_sample",
        output=table,
        columns=f"{few.hash.text} AS {hash_name}, {copied_columns(names)}",
        source=few.table,
        side=few.side.text,
    )
    rows.session.run(statement, (*few.hash.values, *few.side.values))
    item = copy_item(table, [hash_name, *names])
    return source._replace(sample=Sample(item, Expression("true"), Expression(f"t.{hash_name}")))
