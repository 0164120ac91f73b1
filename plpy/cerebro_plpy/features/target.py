"""What is to be predicted: which task a column sets, its classes, or the scale of its numbers.

Which task it is follows AutoGluon's rule: two values, or what is no number, are classes; so are whole numbers of which
there are few different ones among many rows.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.keras_names import near_matches
from cerebro_plpy.configs.templates.template import Classes, Floats, Head, Measure
from cerebro_plpy.database.names import quote_identifier
from cerebro_plpy.database.platform import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.features import encoding
from cerebro_plpy.features.columns import TEXT, RawColumn
from cerebro_plpy.features.encoding import Expression
from cerebro_plpy.features.recipe import NUMBERS
from cerebro_plpy.features.statistics import Source

CLASSIFICATION, REGRESSION = TASKS = ("classification", "regression")
MOST_CLASSES = 10_000
FEW_CLASSES = 1000
"""More different numbers are no classes."""
MANY_ROWS = 1000
SHARE, SHARE_OF_FEW = 0.05, 0.10
"""Of all rows as many different numbers at most, where they are classes; the second where there are not many rows."""


class Target(NamedTuple):
    """A column to predict, with its task and what a model gives for it; `values` are the texts of its classes.

    `rows` have a value, `missing` have none.
    """

    column: RawColumn
    task: str
    head: Head
    values: tuple[str, ...]
    rows: int
    missing: int


class Summary(NamedTuple):
    """How many rows there are, and have a value; of finite numbers whether all are whole, and what they are about."""

    rows: int
    present: int
    finite: int
    whole: bool
    mean: float | None
    deviation: float
    low: float | None
    high: float | None


def task_of(family: str, rows: int, different: int, whole: bool) -> str:
    """The task of a column with so many rows and different values.

    >>> [task_of("integer", 900, n, True) for n in (2, 90, 91)]
    ['classification', 'classification', 'regression']
    >>> task_of("real", 900, 90, False), task_of("text", 5, 5, False)
    ('regression', 'classification')
    """
    if different == 2 or family == TEXT:
        return CLASSIFICATION
    share = SHARE if rows > MANY_ROWS else SHARE_OF_FEW
    few = different <= FEW_CLASSES and different <= share * rows
    return CLASSIFICATION if whole and few else REGRESSION


def read_target(reader: Reader, module: str, source: Source, column: RawColumn, task: str | None) -> Target:
    """What training rows say of the target; `task` is what the caller wants it to be.

    Raises DatatypeMismatch for a type that cannot be predicted, InvalidParameter where its values teach nothing.
    """
    if column.family != TEXT and column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: target {column.name!r} has type {column.type}, which cannot be predicted.",
            hint="Cast it to a number or to text in a view, and train on that.",
        )
    if task is not None and task not in TASKS:
        raise InvalidParameter(
            f"{module} error: task is {task!r}; expected one of {', '.join(TASKS)}.", hint=near_matches(task, TASKS)
        )
    summary, values = _summary(reader, source, column), _values(reader, source, column)
    _check(module, column, summary, len(values))
    missing = summary.rows - summary.present
    if (task or task_of(column.family, summary.present, len(values), summary.whole)) == REGRESSION:
        head = Floats((_measure(module, column, summary),))
        return Target(column, REGRESSION, head, (), summary.finite, missing)
    if len(values) > MOST_CLASSES or len(values) == summary.present > 2:
        many = f"more than {MOST_CLASSES}" if len(values) > MOST_CLASSES else len(values)
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has {many} different values in {summary.present} rows: as classes"
            " they teach nothing.",
            hint="Predict a number instead (task => 'regression'), or group the values in a view.",
        )
    return Target(column, CLASSIFICATION, Classes(len(values)), values, summary.present, missing)


def _check(module: str, column: RawColumn, summary: Summary, different: int) -> None:
    if not summary.present:
        reason = f"is NULL in all {summary.rows} rows" if summary.rows else "has no rows"
        raise InvalidParameter(
            f"{module} error: target {column.name!r} {reason} to learn from.", hint="Look at the table and the split."
        )
    if different == 1:
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has one value only, in {summary.present} rows: there is nothing to"
            " learn.",
            hint="Look at the table and the split.",
        )


def _measure(module: str, column: RawColumn, summary: Summary) -> Measure:
    if column.family not in NUMBERS:
        raise InvalidParameter(
            f"{module} error: task is {REGRESSION!r}, but target {column.name!r} has type {column.type}.",
            hint=f"Leave task out, or cast the column to a number in a view; {CLASSIFICATION!r} takes any type.",
        )
    if summary.low is None or summary.high is None or summary.mean is None or summary.low == summary.high:
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has fewer than two different finite values.",
            hint="Look at the table and the split.",
        )
    return Measure(summary.mean, summary.deviation, summary.low, summary.high)


def _summary(reader: Reader, source: Source, column: RawColumn) -> Summary:
    number = Expression("NULL::double precision")
    if column.family in NUMBERS:
        number = encoding.number(column.name, column.family or "")
    clauses = {"value": _name(column), "number": number.text, "source": source.table, "side": source.side.text}
    (found,) = reader.run(sql("features.target", **clauses), (*number.values, *source.side.values))
    return Summary(*found)


def _values(reader: Reader, source: Source, column: RawColumn) -> tuple[str, ...]:
    statement = sql("features.target_values", value=_name(column), source=source.table, side=source.side.text)
    return tuple(value for (value,) in reader.run(statement, (*source.side.values, MOST_CLASSES + 1)))


def _name(column: RawColumn) -> str:
    return f"t.{quote_identifier(column.name)}"
