"""Notices about the classes of a target: rare ones, and those that a model never predicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.errors import quote_text
from cerebro_plpy.preprocessing.rows.class_counts import ClassCounts
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows

RARE_SHARE = 0.05
"""A rarest class with a smaller share of the rows is rare, unless all classes have few rows."""
MOST_NAMED = 5
CLASS_WEIGHT = "class_weight"
METRIC_ADVICE = "compare models by metric => 'balanced_accuracy'"


class ClassAdvice(NamedTuple):
    """What a call says already of uneven classes."""

    metric: str | None
    space: Mapping[str, object]

    @property
    def goes_by_accuracy(self) -> bool:
        """Whether models are compared by accuracy, which says little about rare classes."""
        return self.metric in (None, "accuracy")

    def __str__(self) -> str:
        """Return the arguments that the call lacks; empty if it lacks none."""
        parts = []
        if self.goes_by_accuracy:
            parts.append(METRIC_ADVICE)
        if CLASS_WEIGHT not in self.space:
            space = json.dumps({**self.space, CLASS_WEIGHT: "auto"}, ensure_ascii=False)
            parts.append(f"weigh classes by space => {quote_text(space)}")
        return ", and ".join(parts)


class RareClass(NamedTuple):
    """The rarest class of a target."""

    name: str
    rows: int
    total: int  # rows of all classes

    def __str__(self) -> str:
        """Return the class with its share of the rows.

        >>> print(RareClass("true", 52, 5000))
        the rarest class, 'true', has 1.0 % of the rows: 52 of 5000
        """
        share = 100 * self.rows / self.total
        return (
            f"the rarest class, {self.name!r}, has {share:.1f} % of the rows: {self.rows} of "
            f"{self.total}"
        )


def find_rare_class(counts: ClassCounts) -> RareClass | None:
    """Return the rarest class that is trained on, if it is much rarer than classes could be.

    >>> from cerebro_plpy.preprocessing.rows.class_counts import SideCounts
    >>> find_rare_class(ClassCounts((SideCounts("a", 80, 16), SideCounts("b", 3, 1))))
    RareClass(name='b', rows=4, total=100)
    >>> find_rare_class(ClassCounts(tuple(SideCounts(str(n), 8, 2) for n in range(30))))
    """
    trained = [count for count in counts.counts if count.training and count.value is not None]
    if not trained:
        return None
    rarest = min(trained, key=lambda count: count.rows)
    total = sum(count.rows for count in trained)
    if rarest.rows >= min(RARE_SHARE, 0.5 / len(trained)) * total:
        return None
    return RareClass(str(rarest.value), rarest.rows, total)


def list_single_classes(counts: ClassCounts) -> list[str]:
    """Return the classes that have one row, which is trained on."""
    return [
        count.value
        for count in counts.counts
        if count.value is not None and count.training == count.rows == 1
    ]


def list_untrained_classes(counts: ClassCounts) -> list[str]:
    """Return the classes of which all rows are held back."""
    return [
        count.value for count in counts.counts if count.value is not None and not count.training
    ]


def list_unpredicted_classes(rows: ScoredRows) -> list[str]:
    """Return the classes of rows that are predicted for none of them."""
    return sorted(set(rows.labels) - set(rows.list_predictions()))


def describe_single_classes(target: str, names: Sequence[str]) -> str:
    """Return a notice about classes that have one row.

    >>> print(describe_single_classes("kind", ["b"]))
    classes of kind with a single row: 'b'. Predictions of them cannot be checked: join rare \
classes in a view, or leave them out there
    """
    return (
        f"classes of {target} with a single row: {name_few(names)}. Predictions of them cannot be "
        "checked: join rare classes in a view, or leave them out there"
    )


def name_few(names: Iterable[str]) -> str:
    """Return the first names of a list as text.

    >>> name_few("ab"), name_few("abcdefg")
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    quoted = [repr(name) for name in names]
    text = ", ".join(quoted[:MOST_NAMED])
    if len(quoted) > MOST_NAMED:
        text += f" and {len(quoted) - MOST_NAMED} more"
    return text


def count_labels(rows: ScoredRows, names: Iterable[str]) -> int:
    """Return the number of rows that have one of the classes."""
    counts = Counter(rows.labels)
    return sum(counts[name] for name in names)
