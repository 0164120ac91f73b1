"""How many rows of a raw table have what to predict, and on which side of a split those of each
class are.

Each question is one pass over the table. What is known of classes and of numbers of rows follows
from these counts, so that nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.rows.split import Sides
from cerebro_plpy.preprocessing.rows.value_comparison import comparable
from cerebro_plpy.preprocessing.values.canonical_text import written
from cerebro_plpy.preprocessing.values.column_values import distinct_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import TEXT

MOST_CLASSES = 10_000
FEW_CLASSES = 1000
"""More different numbers are no classes."""
FIRST_ROWS = 50_000
"""Among so many rows, whichever they are, too many different values are seen at once as a rule."""
NO_ROWS = Expression("false")


class TargetCounts(NamedTuple):
    """Rows of a table, and those of them that have a target; the largest values of columns that
    grow, as texts.
    """

    rows: int
    present: int
    newest: Mapping[str, str | None]


class SideCounts(NamedTuple):
    """Of a value of the target, as text: rows on either side. It is None where there are more than
    MOST_CLASSES.
    """

    value: str | None
    training: int
    validation: int


class ClassCounts(NamedTuple):
    """The rows of either side that have a target, by its values; none where these are too `many` to
    tell.
    """

    counts: tuple[SideCounts, ...]

    @property
    def many(self) -> bool:
        """Whether there are more than MOST_CLASSES values."""
        return len(self.counts) > MOST_CLASSES or any(each.value is None for each in self.counts)

    @property
    def training(self) -> int:
        """Rows that are trained on."""
        return sum(each.training for each in self.counts)

    @property
    def classes(self) -> tuple[str, ...]:
        """The texts of training rows, in the order that packing gives to classes."""
        return tuple(each.value for each in self.counts if each.training and each.value is not None)

    @property
    def held_back(self) -> int:
        """Rows of these classes that models are compared by."""
        return sum(each.validation for each in self.counts if each.training)

    def together(self) -> ClassCounts:
        """The same rows as if all had one value."""
        return ClassCounts((SideCounts(None, self.training, self.rows - self.training),))

    def unevenness(self, share: float) -> float:
        """How far sides are from what they should be: below 1 where no class is missing in
        training, and no side empty.

        >>> ClassCounts((SideCounts("a", 8, 2), Count("b", 4, 1))).unevenness(0.2)
        0.0
        >>> ClassCounts((SideCounts("a", 0, 2), Count("b", 8, 0))).unevenness(0.2) > 1
        True
        """
        rows = self.rows or 1
        classes = self.counts if len(self.counts) <= FEW_CLASSES else ()
        lost = sum(1 for each in classes if not each.training and each.validation > 1)
        far = (
            sum(
                abs(each.validation - share * (each.training + each.validation))
                for each in self.counts
            )
            / rows
        )
        nothing = not self.training or self.training == self.rows
        return lost + nothing + far / (1 + far)

    @property
    def rows(self) -> int:
        """Rows of both sides."""
        return sum(each.training + each.validation for each in self.counts)


class SideTables(NamedTuple):
    """The quoted names of the tables where training rows lie, and those that are held back: one
    table as a rule.
    """

    training: str
    validation: str

    def parts(self, both: Sides) -> Iterator[tuple[str, Sides]]:
        """Each table with the sides that its rows can be on."""
        if self.training == self.validation:
            yield self.training, both
        else:
            yield self.training, Sides(both.training, NO_ROWS)
            yield self.validation, Sides(NO_ROWS, both.validation)


def count_targets(
    reader: Reader, table: str, target: RawColumn, growing: Sequence[RawColumn] = ()
) -> TargetCounts:
    """Count the rows of a table, of which these columns may grow."""
    newest = ", ".join(
        written(f"pg_catalog.max({comparable(column)})", column.family) for column in growing
    )
    statement = sql("features.total", source=table, value=_name(target), newest=newest)
    ((rows, present, values),) = reader.run(statement)
    return TargetCounts(
        rows, present, {column.name: value for column, value in zip(growing, values)}
    )


def has_many_values(reader: Reader, table: str, target: RawColumn) -> bool:
    """Whether a few rows show already that there are more than MOST_CLASSES values; which rows
    these are is all one.
    """
    value = distinct_text(target.name).text if target.family == TEXT else _name(target)
    statement = sql("features.different", source=table, value=value)
    return bool(reader.run(statement, (MOST_CLASSES, FIRST_ROWS))[0][0])


def count_classes(
    reader: Reader, places: SideTables, both: Sides, target: RawColumn, many: bool
) -> ClassCounts:
    """Count the rows of both sides by the values of the target, but for `many`."""
    counts: dict[str | None, SideCounts] = {}
    value = "NULL::text" if many else distinct_text(target.name, target.family).text
    for table, sides in places.parts(both):
        for name, training, validation in _run_count(reader, table, sides, _name(target), value):
            before = counts.get(name, SideCounts(name, 0, 0))
            counts[name] = SideCounts(
                name, before.training + training, before.validation + validation
            )
    return ClassCounts(tuple(counts[name] for name in sorted(counts, key=_code_points)))


def _run_count(
    reader: Reader, table: str, both: Sides, target: str, value: str
) -> Sequence[tuple[str, int, int]]:
    training = f"pg_catalog.count(*) FILTER (WHERE {both.training.text})"
    validation = f"pg_catalog.count(*) FILTER (WHERE {both.validation.text})"
    if both.all:
        validation = f"pg_catalog.count(*) - {training}"  # what is asked twice is computed once
    statement = sql(
        "features.sides",
        value=value,
        target=target,
        training=training,
        validation=validation,
        source=table,
    )
    return reader.run(statement, (*both.training.values, *both.validation.values, MOST_CLASSES + 1))


def _code_points(text: str | None) -> str:
    return text or ""


def _name(column: RawColumn) -> str:
    return f"t.{quote_identifier(column.name)}"
