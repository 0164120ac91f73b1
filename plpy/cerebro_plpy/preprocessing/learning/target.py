"""What is to be predicted: which task a column sets, its classes, or the scale of its numbers.

Which task it is follows AutoGluon's rule: two values, or what is no number, are classes; so are
whole numbers of which there are few different ones among many rows.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.templates.layers.model_io import Classes, Floats, Head, Measure
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.preprocessing.rows.class_counts import FEW_CLASSES, MOST_CLASSES, ClassCounts
from cerebro_plpy.preprocessing.rows.statistics import Source
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import NUMBERS, TEXT

CLASSIFICATION, REGRESSION = TASKS = ("classification", "regression")
MANY_ROWS = 1000
SHARE, SHARE_OF_FEW = 0.05, 0.10
"""Of all rows as many different numbers at most, where they are classes; the second where there are
not many rows.
"""


class Target(NamedTuple):
    """A column to predict, with its task and what a model gives for it; `values` are the texts of
    its classes.

    `rows` are those that can be trained on.
    """

    column: RawColumn
    task: str
    head: Head
    values: tuple[str, ...]
    rows: int


class Summary(NamedTuple):
    """Of finite numbers how many there are, whether all are whole, and what they are about."""

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


def read_target(
    reader: Reader,
    module: str,
    source: Source,
    column: RawColumn,
    known: ClassCounts,
    task: str | None,
) -> Target:
    """What training rows say of the target; `task` is what the caller wants it to be.

    Raises InvalidParameter where its values teach nothing.
    """
    if task is not None and task not in TASKS:
        raise InvalidParameter(
            f"{module} error: task is {task!r}; expected one of {', '.join(TASKS)}.",
            hint=near_matches(task, TASKS),
        )
    if task == REGRESSION and column.family not in NUMBERS:
        raise InvalidParameter(
            f"{module} error: task is {REGRESSION!r}, but target {column.name!r} has type "
            f"{column.type}.",
            hint=f"Leave task out, or cast the column to a number in a view; {CLASSIFICATION!r} "
            "takes any type.",
        )
    values, present = known.classes, known.training
    if len(values) == 1:
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has one value only, in {present} rows: there "
            "is nothing to learn.",
            hint="Look at the table and the split.",
        )
    if _task(reader, source, column, known, task) == REGRESSION:
        summary = _summary(reader, source, column)
        return Target(
            column, REGRESSION, Floats((_measure(module, column, summary),)), (), summary.finite
        )
    if known.many or len(values) == present > 2:
        many = f"more than {MOST_CLASSES}" if known.many else len(values)
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has {many} different values in {present} "
            "rows: as classes they teach nothing.",
            hint="Predict a number instead (task => 'regression'), or group the values in a view.",
        )
    return Target(column, CLASSIFICATION, Classes(len(values)), values, present)


def check_target(module: str, column: RawColumn) -> None:
    """Raises DatatypeMismatch for a type that cannot be predicted."""
    if column.family != TEXT and column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: target {column.name!r} has type {column.type}, which cannot be "
            "predicted.",
            hint="Cast it to a number or to text in a view, and train on that.",
        )


def _task(
    reader: Reader, source: Source, column: RawColumn, known: ClassCounts, task: str | None
) -> str:
    if task is not None:
        return task
    different = MOST_CLASSES + 1 if known.many else len(known.classes)
    settled = task_of(column.family or "", known.training, different, whole=False)
    if (
        settled == CLASSIFICATION
        or task_of(column.family or "", known.training, different, whole=True) == REGRESSION
    ):
        return settled
    whole = column.family == "integer" or _summary(reader, source, column).whole
    return CLASSIFICATION if whole else REGRESSION


def _measure(module: str, column: RawColumn, summary: Summary) -> Measure:
    if (
        summary.low is None
        or summary.high is None
        or summary.mean is None
        or summary.low == summary.high
    ):
        raise InvalidParameter(
            f"{module} error: target {column.name!r} has fewer than two different finite values.",
            hint="Look at the table and the split.",
        )
    return Measure(summary.mean, summary.deviation, summary.low, summary.high)


def _summary(reader: Reader, source: Source, column: RawColumn) -> Summary:
    number = column_values.number(column.name, column.family or "")
    statement = sql(
        "features.target", number=number.text, source=source.table, side=source.side.text
    )
    (found,) = reader.run(statement, (*number.values, *source.side.values))
    return Summary(*found)
