"""The plan of a packed table: its columns, its rows, and where these go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.platform_protocol import Distribution, Packers
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.view_hints import suggest_query_view
from cerebro_plpy.database.table_hints import choose_view
from cerebro_plpy.errors import InvalidParameter, NullNotAllowed
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.packing.grouped_buffers import BufferLayout
from cerebro_plpy.packing.packed_columns import Column
from cerebro_plpy.records import dataclass, field


@dataclass(frozen=True)
class PackingPlan:
    """Everything that determines a packed table, where its rows go, and who packs them."""

    source: Relation
    output: Relation
    dependent: tuple[Column, ...]
    independent: tuple[Column, ...]
    weight: tuple[Column, ...]  # one column with the weights of rows, or none
    rows: int
    buffer_size: int | None  # requested rows of a buffer, a hint as in MADlib
    normalizing_const: float
    distribution: Distribution
    seed: int | None  # shuffles the rows; None if they keep their order
    packers: Packers
    recipes: Mapping[str, str] = field(default_factory=dict)
    """Recipes that the packers apply to inputs, by name of the input."""
    group_layout: BufferLayout | None = None  # buffers of rows that come group by group
    saves_segments: bool = False  # rows go to no more segments than they are worth

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the packed table in order: inputs, targets, and the weights, if any."""
        return (*self.independent, *self.dependent, *self.weight)

    @property
    def segments(self) -> int:
        """Number of segments, each with a key."""
        return len(self.distribution.keys)


def _suggest_rows(catalog: Catalog, source: Relation, column: Column) -> str:
    """Return a hint with a view of the rows in which a column is not NULL."""
    query = f"SELECT * FROM {source.spelling} t WHERE t.{column.quoted} IS NOT NULL"
    return suggest_query_view("source_table", choose_view(catalog.db), query)


def count_rows(
    catalog: Catalog,
    source: Relation,
    columns: Sequence[Column],
    weight: Sequence[Column] = (),
) -> int:
    """Count the rows of the source, and check its values.

    Raises:
        NullNotAllowed: a column is NULL that must have a value.
        InvalidParameter: the source is empty, or has weights that cannot be used.
    """
    required = [column for column in columns if column.kind != "onehot"]
    counts = [
        f", count(*) FILTER (WHERE t.{column.quoted} IS NULL) AS n{number}"
        for number, column in enumerate(required)
    ]
    counts += [
        sql("pack.count_weights", weight=f"t.{column.quoted}", number=str(number))
        for number, column in enumerate(weight)
    ]
    row = catalog.db.row(sql("pack.count", source=source.quoted, nulls="".join(counts)))
    rows = int(row["rows"])
    if rows == 0:
        raise InvalidParameter(f"{catalog.module} error: Input table '{source.spelling}' is empty!")
    for number, column in enumerate(required):
        nulls = row[f"n{number}"]
        if nulls:
            raise NullNotAllowed(
                f"{catalog.module} error: column '{column.name}' of table '{source.spelling}' is "
                f"NULL in {nulls} of {count_nouns(rows, 'row')}.",
                hint=_suggest_rows(catalog, source, column),
            )
    for number, column in enumerate(weight):
        usable = row[f"w{number}"]
        positive = row[f"p{number}"]
        if usable < rows or not positive:
            raise InvalidParameter(
                f"{catalog.module} error: column '{column.name}' of table '{source.spelling}' has "
                f"{count_nouns(rows - usable, 'negative or non-finite weight')}, and "
                f"{positive} above 0, in {count_nouns(rows, 'row')}.",
                hint="A weight is how much a row counts in the training loss: 0 for nothing, 2 "
                "for two rows.",
            )
    return rows
