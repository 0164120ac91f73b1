"""Greedy ensemble selection: models whose mean prediction is best, some of them counted twice.

Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble Selection from Libraries of Models" (2004),
section 2.1, with replacement as in section 2.2.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cmp_to_key

from cerebro_plpy.limits import Poll, no_poll, poll_between
from cerebro_plpy.preprocessing.scoring.metrics import LARGER_IS_BETTER, SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows


class RankedRows:
    """Predictions for the hold-out rows, compared with others by metrics.

    Args:
        metrics: the first one decides; each other one, if those before it are equal.
    """

    def __init__(self, rows: ScoredRows, metrics: Sequence[str]) -> None:
        self.rows = rows
        self._metrics = metrics
        self._scores: dict[str, float] = {}

    def score(self, metric: str) -> float:
        """Return the value of a metric, which is computed once."""
        if metric not in self._scores:
            self._scores[metric] = SCORES[metric](self.rows)
        return self._scores[metric]

    def is_better_than(self, rival: RankedRows) -> bool:
        """Return whether the predictions are better than others for the same rows."""
        for metric in self._metrics:
            is_larger_better = metric in LARGER_IS_BETTER
            score = self.score(metric)
            rival_score = rival.score(metric)
            if math.isnan(score):
                return False
            if is_better(score, rival_score, is_larger_better):
                return True
            if is_better(rival_score, score, is_larger_better):
                return False
        return False

    @property
    def has_score(self) -> bool:
        """Return whether the first metric is a number."""
        return not math.isnan(self.score(self._metrics[0]))


def select_greedily(
    library: Sequence[ScoredRows],
    metrics: Sequence[str],
    picks: int,
    poll: Poll = no_poll,
) -> Counter[int]:
    """Return how often each model counts in the best mean.

    Args:
        library: the predictions of each model for the same rows.
        metrics: the first one decides; each other one, if those before it are equal.
        picks: the number of models to pick. The best mean on the way is returned: a pick that is
            no improvement may lead to one, because it counts for less in a mean of more picks.

    >>> from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow
    >>> rows = lambda *numbers: ScoredRows.collect(ScoredRow("3", {}, each) for each in numbers)
    >>> library = [rows(1.0, 2.0), rows(5.0, 4.0), rows(9.0, 9.0)]
    >>> sorted(select_greedily(library, ["mae"], 5).items())
    [(0, 1), (1, 1)]
    """
    counts: Counter[int] = Counter()
    best_counts: Counter[int] = Counter()
    best_ensemble: RankedRows | None = None
    ensemble: RankedRows | None = None
    for count in range(1, picks + 1):
        best: tuple[int, RankedRows] | None = None
        for place, rows in enumerate(poll_between(library, poll, interval=1)):
            mean = rows
            if ensemble is not None:
                mean = average_rows([(ensemble.rows, count - 1), (rows, 1)])
            candidate = RankedRows(mean, metrics)
            if candidate.has_score and (best is None or candidate.is_better_than(best[1])):
                best = (place, candidate)
        if best is None:
            break
        choice, ensemble = best
        counts[choice] += 1
        if best_ensemble is None or ensemble.is_better_than(best_ensemble):
            best_ensemble = ensemble
            best_counts = counts.copy()
    return best_counts


def average_rows(parts: Sequence[tuple[ScoredRows, int]]) -> ScoredRows:
    """Return the weighted mean of predictions for the same rows in the same order.

    >>> from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow
    >>> first = ScoredRows.collect([ScoredRow("a", {"a": 1.0, "b": 0.0})])
    >>> second = ScoredRows.collect([ScoredRow("a", {"a": 0.0, "b": 1.0})])
    >>> average_rows([(first, 3), (second, 1)]).columns
    (array('d', [0.75]), array('d', [0.25]))
    """
    return _combine(parts, sum(count for _, count in parts))


def add_rows(parts: Sequence[tuple[ScoredRows, float]]) -> ScoredRows:
    """Return the sum of predictions for the same rows in the same order, each times its share.

    >>> from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow
    >>> first = ScoredRows.collect([ScoredRow("a", {"a": 1.0, "b": 0.0})])
    >>> second = ScoredRows.collect([ScoredRow("a", {"a": 0.0, "b": 1.0})])
    >>> add_rows([(first, 0.75), (second, 0.25)]).columns
    (array('d', [0.75]), array('d', [0.25]))
    """
    return _combine(parts, 1.0)


def _combine(parts: Sequence[tuple[ScoredRows, float]], divisor: float) -> ScoredRows:
    """Return the sum of predictions, each times its factor, divided by a number."""
    first, _ = parts[0]
    columns = []
    for place in range(len(first.columns)):
        sums = [0.0] * len(first)
        for rows, factor in parts:
            sums = [total + value * factor for total, value in zip(sums, rows.columns[place])]
        columns.append(array("d", (total / divisor for total in sums)))
    return first.replace_columns(columns)


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


def rank_rows(library: Mapping[int, ScoredRows], metrics: Sequence[str]) -> list[int]:
    """Return the keys of predictions for the same rows, the best first.

    Args:
        metrics: the first one decides; each other one, if those before it are equal.

    >>> from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow
    >>> library = {key: ScoredRows.collect([ScoredRow("3", {}, key)]) for key in (9, 3, 4)}
    >>> rank_rows(library, ["mae"])
    [3, 4, 9]
    """
    candidates = {key: RankedRows(rows, metrics) for key, rows in library.items()}

    def compare(key: int, rival: int) -> int:
        wins = candidates[key].is_better_than(candidates[rival])
        loses = candidates[rival].is_better_than(candidates[key])
        return loses - wins

    return sorted(candidates, key=cmp_to_key(compare))


def predicts_better(metrics: Sequence[str], new: ScoredRows, old: ScoredRows) -> bool:
    """Return whether predictions are better than others for the same rows.

    Args:
        metrics: the first one decides; each other one, if those before it are equal.
    """
    return RankedRows(new, metrics).is_better_than(RankedRows(old, metrics))
