"""Counts of the rows of a raw table: rows with a target, and rows of each class and side.

Each function reads the table once. Classes and numbers of rows follow from these counts, so that
nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.rows.split import Sides
from cerebro_plpy.preprocessing.rows.value_comparison import comparable
from cerebro_plpy.preprocessing.values.canonical_text import comparable_text
from cerebro_plpy.preprocessing.values.column_values import known_value, value_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.preprocessing.values.families import TEXTS

MOST_CLASSES = 10_000
FEW_CLASSES = 1000
"""Numbers with more different values are not taken for classes."""
FIRST_ROWS = 50_000
"""Rows in which too many different values show at once as a rule."""
EXAMPLES = 2
"""Unknown classes that are named."""
NO_ROWS = Expression("false")
ALL_ROWS = Expression("true")


class TargetCounts(NamedTuple):
    """The rows of a table."""

    rows: int
    present: int  # rows that have a target
    newest: Mapping[str, str | None]  # the largest values of columns that grow, as texts


class SideCounts(NamedTuple):
    """The rows of each side that have one value of the target."""

    value: str | None  # None stands for all values of more than MOST_CLASSES
    training: int
    validation: int

    @property
    def rows(self) -> int:
        """The number of rows of both sides."""
        return self.training + self.validation


class ClassCounts(NamedTuple):
    """The rows of each side that have a target, by its values."""

    counts: tuple[SideCounts, ...]

    @property
    def many(self) -> bool:
        """True if there are more than MOST_CLASSES values."""
        return len(self.counts) > MOST_CLASSES or any(count.value is None for count in self.counts)

    @property
    def training(self) -> int:
        """The number of training rows."""
        return sum(count.training for count in self.counts)

    @property
    def rows(self) -> int:
        """The number of rows of both sides."""
        return sum(count.rows for count in self.counts)

    @property
    def classes(self) -> tuple[str, ...]:
        """The values of training rows, in the order that packing gives to classes."""
        values = (count.value for count in self.counts if count.training)
        return tuple(value for value in values if value is not None)

    @property
    def comparable_rows(self) -> int:
        """The number of validation rows whose class is trained on."""
        return sum(count.validation for count in self.counts if count.training)

    def without_values(self) -> ClassCounts:
        """Return the counts of the same rows as if all had one value."""
        return ClassCounts((SideCounts(None, self.training, self.rows - self.training),))

    def unevenness(self, share: float) -> float:
        """Return how far the sides are from a share of validation rows in each class.

        The result is below 1 if training has every class and neither side is empty.

        >>> ClassCounts((SideCounts("a", 8, 2), SideCounts("b", 4, 1))).unevenness(0.2)
        0.0
        >>> ClassCounts((SideCounts("a", 0, 2), SideCounts("b", 8, 0))).unevenness(0.2) > 1
        True
        """
        untrained = 0
        if len(self.counts) <= FEW_CLASSES:
            untrained = sum(not count.training and count.validation > 1 for count in self.counts)
        distances = (abs(count.validation - share * count.rows) for count in self.counts)
        distance = sum(distances) / (self.rows or 1)
        is_one_sided = self.training in (0, self.rows)
        return untrained + is_one_sided + distance / (1 + distance)


class SideTables(NamedTuple):
    """The quoted names of the tables of training and of validation rows, which may be one table."""

    training: str
    validation: str

    def with_sides(self, sides: Sides) -> Iterator[tuple[str, Sides]]:
        """Yield each table with the sides that its rows can be on."""
        if self.training == self.validation:
            yield self.training, sides
        else:
            yield self.training, Sides(sides.training, NO_ROWS)
            yield self.validation, Sides(NO_ROWS, sides.validation)


class UnknownTargets(NamedTuple):
    """Rows that an earlier run could not have learned from."""

    missing: int  # rows without a target
    unknown: int  # rows with a target that is not one of the classes, or not a finite number
    examples: Mapping[str, int]  # the most frequent of these targets, with their rows


def count_unknown(
    reader: Reader, table: str, side: Expression, label: Expression, is_known: Expression
) -> UnknownTargets:
    """Count the rows of a side whose target is not known."""
    statement = sql(
        "features.unknown", source=table, label=label.text, known=is_known.text, side=side.text
    )
    values = (*label.values, *is_known.values, *side.values, EXAMPLES + 1)
    rows = reader.run(statement, values)
    counts = {name: int(count) for name, count, _ in rows}
    missing = counts.pop(None, 0)
    labelled = next((total for *_, total in rows), None)
    examples = dict(list(counts.items())[:EXAMPLES])
    return UnknownTargets(missing, int(labelled or 0), examples)


def count_targets(
    reader: Reader, table: str, target: RawColumn, growing: Sequence[RawColumn] = ()
) -> TargetCounts:
    """Count the rows of a table; `growing` are the columns whose largest value is read."""
    newest = ", ".join(
        comparable_text(f"pg_catalog.max({comparable(column)})", column.family)
        for column in growing
    )
    statement = sql("features.total", source=table, value=known_value(target), newest=newest)
    ((rows, present, values),) = reader.run(statement)
    by_column = {column.name: value for column, value in zip(growing, values)}
    return TargetCounts(rows, present, by_column)


def has_many_values(reader: Reader, table: str, target: RawColumn) -> bool:
    """Return whether a few rows already have more than MOST_CLASSES values."""
    value = value_text(target).text if target.family in TEXTS else known_value(target)
    statement = sql("features.different", source=table, value=value)
    return bool(reader.run(statement, (MOST_CLASSES, FIRST_ROWS))[0][0])


def count_classes(
    reader: Reader, tables: SideTables, sides: Sides, target: RawColumn, many: bool
) -> ClassCounts:
    """Count the rows of both sides by the values of the target, or all together if `many`."""
    counts: dict[str | None, SideCounts] = {}
    value = "NULL::text" if many else value_text(target).text
    for table, possible in tables.with_sides(sides):
        for name, training, validation in _run_count(reader, table, possible, target, value):
            count = counts.get(name, SideCounts(name, 0, 0))
            counts[name] = SideCounts(
                name, count.training + training, count.validation + validation
            )
    # By code points, as packing sorts classes.
    return ClassCounts(tuple(counts[name] for name in sorted(counts, key=lambda name: name or "")))


def _run_count(
    reader: Reader, table: str, sides: Sides, target: RawColumn, value: str
) -> Sequence[tuple[str, int, int]]:
    training = f"pg_catalog.count(*) FILTER (WHERE {sides.training.text})"
    validation = f"pg_catalog.count(*) FILTER (WHERE {sides.validation.text})"
    if sides.all:
        # PostgreSQL computes an aggregate that stands twice once.
        validation = f"pg_catalog.count(*) - {training}"
    statement = sql(
        "features.sides",
        value=value,
        target=known_value(target),
        training=training,
        validation=validation,
        source=table,
    )
    values = combined_values(sides)
    return reader.run(statement, (*values, MOST_CLASSES + 1))
