"""A sample of the rows of a source, kept for all questions about it that need no more."""

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
"""The name of a sample's column of hashes, if no other column has it."""
MOST_COLUMNS = 1600
"""A table has at most so many."""


def keep_sample(rows: SourceRows, source: Source, columns: Sequence[RawColumn]) -> Source:
    """Return the source with a sample of these columns, if its rows are many and a table has room
    for the columns.

    The sample is what `Source.few` finds without it, but not all rows are read and hashed for each
    question.
    """
    if (
        source.rows is None
        or source.rows <= statistics.QUANTILES_SAMPLE
        or len(columns) >= MOST_COLUMNS
    ):
        return source
    sample = rows.name_table("sample")
    names, few = [column.name for column in columns], source.few(source.rows, statistics.SAMPLE)
    hashed = next(name for n in count() if (name := HASH + "_" * n) not in names)
    statement = sql(
        "features.keep_sample",
        output=sample,
        columns=f"{few.hash.text} AS {hashed}, {copied_columns(names)}",
        source=few.table,
        side=few.side.text,
    )
    rows.session.run(statement, (*few.hash.values, *few.side.values))
    kept = copy_item(sample, [hashed, *names])
    return source._replace(sample=Sample(kept, Expression("true"), Expression(f"t.{hashed}")))
