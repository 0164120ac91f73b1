"""The threshold between two classes that is best for a metric.

A metric such as `f1` is not largest where the more probable class is predicted. The threshold is
chosen on predictions for rows that the model was not trained on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows

USUAL = 0.5
"""From this probability on, a class is the more probable one of two."""
METRICS = ("f1", "balanced_accuracy")
"""Metrics of predicted classes that another threshold can improve."""


class Counts(NamedTuple):
    """The rows of the second class and of all others, predicted or in all."""

    second_rows: int
    other_rows: int


def fit_threshold(metric: str, rows: ScoredRows) -> float | None:
    """Return the threshold of a model of two classes; None for the more probable class.

    Each half of the rows is measured at the threshold of the other half, so that one is not found
    in noise.

    Args:
        rows: predictions whose labels and probabilities are known.
    """
    if metric not in METRICS or not rows or len(rows.classes) != 2:
        return None
    second = rows.classes[1]
    pairs = [(row.classes[second], row.label == second) for row in rows if _is_usable(row)]
    halves = pairs[::2], pairs[1::2]
    if not all(_has_both_classes(half) for half in halves):
        return None
    gain = 0.0
    for searched, measured in (halves, halves[::-1]):
        threshold = _search(metric, searched)
        gain += _measure(metric, measured, threshold) - _measure(metric, measured, USUAL)
    if not gain > 0:
        return None
    threshold = _search(metric, pairs)
    return None if threshold == USUAL else threshold


def _has_both_classes(pairs: Sequence[tuple[float, bool]]) -> bool:
    return len({is_second for _, is_second in pairs}) == 2


def _is_usable(row: ScoredRow) -> bool:
    return row.label in row.classes and all(map(math.isfinite, row.classes.values()))


def _search(metric: str, pairs: Sequence[tuple[float, bool]]) -> float:
    """Return the threshold with the best score, of equal ones that closest to the usual one."""
    total = _count(pairs)
    best_score = _measure(metric, pairs, USUAL)
    best = USUAL
    for threshold, predicted in _list_cuts(pairs):
        score = _score(metric, predicted, total)
        is_closer = abs(threshold - USUAL) < abs(best - USUAL)
        if score > best_score or (score == best_score and is_closer):
            best_score = score
            best = threshold
    return best


def _list_cuts(pairs: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, Counts]]:
    """Yield thresholds midway between probabilities, with the rows at or above each.

    At each of them, both classes are predicted.
    """
    groups = groupby(sorted(pairs, reverse=True), key=lambda pair: pair[0])
    counts = Counts(0, 0)
    previous: float | None = None
    for probability, group in groups:
        if previous is not None:
            middle = (previous + probability) / 2
            yield middle if middle > probability else previous, counts
        group_counts = _count(list(group))
        counts = Counts(
            counts.second_rows + group_counts.second_rows,
            counts.other_rows + group_counts.other_rows,
        )
        previous = probability


def _count(pairs: Sequence[tuple[float, bool]]) -> Counts:
    second = sum(is_second for _, is_second in pairs)
    return Counts(second, len(pairs) - second)


def _measure(metric: str, pairs: Sequence[tuple[float, bool]], threshold: float) -> float:
    """Return the score of predictions at a threshold."""
    predicted = _count([pair for pair in pairs if pair[0] >= threshold])
    return _score(metric, predicted, _count(pairs))


def _score(metric: str, predicted: Counts, total: Counts) -> float:
    """Return a metric from the rows that are predicted to be of the second class.

    The classes are weighted as in `metrics.f1` and `metrics.balanced_accuracy`.
    """
    hits = predicted.second_rows
    other_hits = total.other_rows - predicted.other_rows
    if metric == "balanced_accuracy":
        shares = [(hits, total.second_rows), (other_hits, total.other_rows)]
    else:
        others_predicted = total.other_rows + total.second_rows - sum(predicted)
        shares = [
            (2 * hits, total.second_rows + sum(predicted)),
            (2 * other_hits, total.other_rows + others_predicted),
        ]
    scores = [part / count for part, count in shares if count]
    return sum(scores) / len(scores)
