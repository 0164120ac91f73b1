"""Greedy ensemble selection: models whose mean prediction is best, some of them counted twice.

Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble Selection from Libraries of Models" (2004),
section 2.1, with replacement as in section 2.2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from cerebro_plpy.limits import Poll, no_poll, poll_between
from cerebro_plpy.preprocessing.scoring.metrics import LARGER_IS_BETTER, SCORES, ScoredRow

Score = Callable[[Sequence[ScoredRow]], float]


def select_greedily(
    library: Sequence[Sequence[ScoredRow]],
    score: Score,
    larger: bool,
    picks: int,
    poll: Poll = no_poll,
) -> Counter[int]:
    """Return how often each model counts in the best mean.

    Args:
        library: the predictions of each model for the same rows.
        larger: larger scores are better.
        picks: the most models to pick; a model that does not improve the score ends the selection.

    >>> from cerebro_plpy.preprocessing.scoring.metrics import mae
    >>> rows = lambda *numbers: [ScoredRow("3", {}, number) for number in numbers]
    >>> library = [rows(1.0, 2.0), rows(5.0, 4.0), rows(9.0, 9.0)]
    >>> sorted(select_greedily(library, mae, False, 5).items())
    [(0, 1), (1, 1)]
    """
    counts: Counter[int] = Counter()
    best_score = math.nan
    ensemble: list[ScoredRow] = []
    for count in range(1, picks + 1):
        candidates = [
            average_rows([(ensemble, count - 1), (rows, 1)]) if ensemble else list(rows)
            for rows in poll_between(library, poll, interval=1)
        ]
        scores = [score(rows) for rows in poll_between(candidates, poll, interval=1)]
        place = find_best(scores, larger)
        if place is None or not is_better(scores[place], best_score, larger):
            break
        best_score = scores[place]
        ensemble = candidates[place]
        counts[place] += 1
    return counts


def average_rows(parts: Sequence[tuple[Sequence[ScoredRow], int]]) -> list[ScoredRow]:
    """Return the weighted mean of predictions for the same rows in the same order.

    >>> first = [ScoredRow("a", {"a": 1.0, "b": 0.0})]
    >>> second = [ScoredRow("a", {"a": 0.0, "b": 1.0})]
    >>> average_rows([(first, 3), (second, 1)])
    [ScoredRow(label='a', classes={'a': 0.75, 'b': 0.25}, number=0.0, prediction=None)]
    """
    return _combine(parts, sum(count for _, count in parts))


def add_rows(parts: Sequence[tuple[Sequence[ScoredRow], float]]) -> list[ScoredRow]:
    """Return the sum of predictions for the same rows in the same order, each times its share.

    >>> first = [ScoredRow("a", {"a": 1.0, "b": 0.0})]
    >>> second = [ScoredRow("a", {"a": 0.0, "b": 1.0})]
    >>> add_rows([(first, 0.75), (second, 0.25)])
    [ScoredRow(label='a', classes={'a': 0.75, 'b': 0.25}, number=0.0, prediction=None)]
    """
    return _combine(parts, 1.0)


def _combine(parts: Sequence[tuple[Sequence[ScoredRow], float]], divisor: float) -> list[ScoredRow]:
    """Return the sum of predictions, each times its factor, divided by a number."""
    factors = [factor for _, factor in parts]

    def combine(rows: Sequence[ScoredRow]) -> ScoredRow:
        classes = {
            name: sum(row.classes[name] * factor for row, factor in zip(rows, factors)) / divisor
            for name in rows[0].classes
        }
        number = 0.0
        if not classes:
            number = sum(row.number * factor for row, factor in zip(rows, factors)) / divisor
        return ScoredRow(rows[0].label, classes, number)

    return [combine(rows) for rows in zip(*(part for part, _ in parts))]


def find_best(scores: Sequence[float], larger: bool) -> int | None:
    """Return the position of the best score, the first of equals; None if all are NaN."""
    best: int | None = None
    best_score = math.nan
    for place, score in enumerate(scores):
        if not math.isnan(score) and is_better(score, best_score, larger):
            best = place
            best_score = score
    return best


def is_better(new: float, old: float, larger: bool) -> bool:
    """Return whether a score is better than another; NaN is the worst.

    >>> is_better(0.9, 0.8, True), is_better(0.9, 0.8, False), is_better(1.0, float("nan"), False)
    (True, False, True)
    """
    return math.isnan(old) or (new > old if larger else new < old)


def predicts_better(
    metrics: Sequence[str], new: Sequence[ScoredRow], old: Sequence[ScoredRow]
) -> bool:
    """Return whether predictions are better than others for the same rows.

    Args:
        metrics: the first one decides; each other one, if those before it are equal.
    """
    for metric in metrics:
        is_larger_better = metric in LARGER_IS_BETTER
        new_score = SCORES[metric](new)
        old_score = SCORES[metric](old)
        if is_better(new_score, old_score, is_larger_better):
            return True
        if is_better(old_score, new_score, is_larger_better):
            return False
    return False
