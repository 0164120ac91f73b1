"""The task of a target, if the call does not name one: its classes or its numbers are predicted.

Texts, and columns of two values, have classes; fractions and amounts of money are numbers. Whole
numbers can be either. Their values decide, and how many rows each value has:

* Few values (at most 20) are classes, such as ratings, weekdays or digits.
* More values are numbers, such as ages, years or minutes.
* Counts are numbers, though they may have few values: they begin at 0 or 1, and values have fewer
  and fewer rows towards the highest, which is rare.
* More than five values, of which some are negative, are numbers.
* Many values are classes if they are labels: they begin at 0 or 1, none is left out, and all have
  about as many rows.
* All values are classes if the name of the column contains a word such as `code` or `label`.
* Values are numbers if there are too few rows for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.rows.class_counts import FEW_CLASSES, ClassCounts
from cerebro_plpy.preprocessing.values.canonical_text import MONEY
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import TEXTS

CLASSIFICATION = "classification"
REGRESSION = "regression"
TASKS = (CLASSIFICATION, REGRESSION)
MANY_ROWS = 1000
MAX_SHARE = 0.05
MAX_SHARE_OF_FEW = 0.10
"""Largest number of distinct values per row if they are classes; the second for few rows."""
MAX_SHARE_OF_LABELS = 0.20
"""The same for few values from 0 or 1 on, without a gap."""
FEW_VALUES = 20
FEW_SIGNED_VALUES = 5
"""Most values that are classes if some of them are negative."""
LEAST_COUNTS = 5
"""Least values of counts; fewer are classes."""
RARE = 0.01
"""Share of the rows below which a value is rare."""
CHANCE = 2.0
"""Deviations by which chance may change a number of rows."""
CODE_WORDS = frozenset(
    ("category", "class", "cluster", "code", "kind", "label", "postcode", "type", "zip", "zipcode")
)
"""Words in the names of columns whose numbers are codes."""


class TaskChoice(NamedTuple):
    """A task, and how it was chosen."""

    task: str
    reason: str
    note: str | None = None  # a message about another task that may be meant


class ValueRows(NamedTuple):
    """A number, and how many rows have it."""

    value: float
    rows: int


def infer_task(column: RawColumn, counts: ClassCounts) -> TaskChoice:
    """Choose the task of a target by its type, its values, and how many rows each value has."""
    if column.family in TEXTS:
        return TaskChoice(CLASSIFICATION, f"its type is {column.type}")
    if counts.many:
        return TaskChoice(REGRESSION, "it has thousands of different numbers")
    if len(counts.classes) == 2:
        return TaskChoice(CLASSIFICATION, "it has two values")
    if column.family == MONEY:
        return TaskChoice(REGRESSION, "amounts of money are numbers")
    values = read_values(counts)
    if not values:
        return TaskChoice(REGRESSION, "its numbers are infinite")
    if any(value != math.floor(value) for value, _ in values):
        return TaskChoice(REGRESSION, "not all of its numbers are whole")
    task, reason = infer_task_of_whole(column.name, values)
    return TaskChoice(task, reason, _write_note(column.name, task, reason, values))


def read_values(counts: ClassCounts) -> list[ValueRows]:
    """Return the finite values of a column of numbers in ascending order, with their rows."""
    values = [
        ValueRows(float(count.value), count.training)
        for count in counts.counts
        if count.training and count.value is not None
    ]
    return sorted(value for value in values if math.isfinite(value.value))


def infer_task_of_whole(name: str, values: Sequence[ValueRows]) -> tuple[str, str]:
    """Return the task of a column of whole numbers, and the reason.

    >>> infer_task_of_whole("stars", [ValueRows(n, 20) for n in range(1, 6)])
    ('classification', 'whole numbers of 5 different values')
    >>> infer_task_of_whole("age", [ValueRows(n, 20) for n in range(18, 66)])
    ('regression', 'whole numbers of 48 different values')
    """
    count = len(values)
    total = sum(rows for _, rows in values)
    different = f"whole numbers of {count_nouns(count, 'different value')}"
    share = MAX_SHARE if total > MANY_ROWS else MAX_SHARE_OF_FEW
    if _is_contiguous(values) and count <= FEW_VALUES:
        share = MAX_SHARE_OF_LABELS
    if count > FEW_CLASSES or count > share * total:
        return REGRESSION, f"{different} in {count_nouns(total, 'row')}"
    if not CODE_WORDS.isdisjoint(word.lower() for word in split_words(name)):
        return CLASSIFICATION, f"{different}, called a code"
    if count > FEW_VALUES:
        if _is_contiguous(values) and _is_even(values):
            return CLASSIFICATION, f"{different} without a gap, each in about as many rows"
        return REGRESSION, different
    if values[0].value < 0 and count > FEW_SIGNED_VALUES:
        return REGRESSION, f"{different}, some of them negative"
    if _has_counts(values):
        return REGRESSION, f"{different} that get rarer and rarer, as counts do"
    return CLASSIFICATION, different


def split_words(name: str) -> list[str]:
    """Return the words of a name.

    >>> split_words("zip_code"), split_words("PassengerClass"), split_words("HTTPCode2")
    (['zip', 'code'], ['Passenger', 'Class'], ['HTTP', 'Code'])
    """
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)


def can_be_classes(counts: ClassCounts) -> bool:
    """Return whether numbers have so few values that these may be meant as classes."""
    count = len(counts.classes)
    return count <= FEW_CLASSES and count <= MAX_SHARE_OF_LABELS * counts.training


def _write_note(name: str, task: str, reason: str, values: Sequence[ValueRows]) -> str | None:
    """Return the message about the other task; None if it cannot be meant."""
    count = len(values)
    if task == CLASSIFICATION:
        return (
            f"{name} is predicted as one of {count_nouns(count, 'class')} ({reason}); task => "
            "'regression' predicts a number"
        )
    if count > FEW_CLASSES or count > MAX_SHARE_OF_LABELS * sum(rows for _, rows in values):
        return None
    return (
        f"{name} is predicted as a number ({reason}); task => 'classification' predicts one of "
        f"{count_nouns(count, 'class')}"
    )


def _is_contiguous(values: Sequence[ValueRows]) -> bool:
    """Return whether values begin at 0 or 1, and no whole number is left out."""
    return values[0].value in (0, 1) and values[-1].value - values[0].value == len(values) - 1


def _is_even(values: Sequence[ValueRows]) -> bool:
    """Return whether no value has more than twice, or less than half of the usual rows."""
    mean = sum(rows for _, rows in values) / len(values)
    least = mean / 2 - CHANCE * math.sqrt(mean / 2)
    most = mean * 2 + CHANCE * math.sqrt(mean * 2)
    return all(least <= rows <= most for _, rows in values)


def _has_counts(values: Sequence[ValueRows]) -> bool:
    """Return whether rows get fewer and fewer from the most frequent value to the highest.

    They must also get more and more up to the most frequent value, and the highest must be rare.
    """
    rows = [value.rows for value in values]
    if values[0].value not in (0, 1) or len(rows) < LEAST_COUNTS or rows[-1] >= RARE * sum(rows):
        return False
    peak = rows.index(max(rows))
    return _falls(rows[peak:]) and _falls(rows[peak::-1])


def _falls(rows: Sequence[int]) -> bool:
    """Return whether numbers of rows fall, but for chance."""
    return all(
        count <= previous + CHANCE * math.sqrt(previous) for previous, count in zip(rows, rows[1:])
    )
