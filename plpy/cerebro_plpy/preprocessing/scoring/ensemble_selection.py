"""Which of many models predict best together: chosen greedily, one after another, some of them more
than once. Pure.

Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble Selection from Libraries of Models" (2004),
section 2.1, with replacement as in section 2.2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from cerebro_plpy.limits import Poll, no_poll, poll_between
from cerebro_plpy.preprocessing.scoring.metrics import Told

Score = Callable[[Sequence[Told]], float]


def selected(
    library: Sequence[Sequence[Told]], score: Score, larger: bool, picks: int, poll: Poll = no_poll
) -> Counter[int]:
    """How often each model counts whose mean is best; `library` has what each says of the same
    rows.

    At most so many are picked, the best alone first, and none that makes nothing better.

    >>> from cerebro_plpy.preprocessing.scoring.metrics import mae
    >>> rows = lambda *numbers: [Told("3", {}, number) for number in numbers]
    >>> sorted(selected([rows(1.0, 2.0), rows(5.0, 4.0), rows(9.0, 9.0)], mae, False, 5).items())
    [(0, 1), (1, 1)]
    """
    chosen: Counter[int] = Counter()
    best, together = math.nan, list[Told]()
    for count in range(1, picks + 1):
        tried = [
            mean([(together, count - 1), (rows, 1)]) if together else list(rows)
            for rows in poll_between(library, poll, interval=1)
        ]
        scores = [score(rows) for rows in poll_between(tried, poll, interval=1)]
        place = best_place(scores, larger)
        if place is None or not is_better(scores[place], best, larger):
            break
        best, together = scores[place], tried[place]
        chosen[place] += 1
    return chosen


def mean(parts: Sequence[tuple[Sequence[Told], int]]) -> list[Told]:
    """What models say together, each counted so often; all of the same rows in one order.

    >>> mean([([Told("a", {"a": 1.0, "b": 0.0})], 3), ([Told("a", {"a": 0.0, "b": 1.0})], 1)])
    [Told(label='a', classes={'a': 0.75, 'b': 0.25}, number=0.0)]
    """
    counts = [count for _, count in parts]
    total = sum(counts)

    def joined(rows: Sequence[Told]) -> Told:
        classes = {
            name: sum(row.classes[name] * count for row, count in zip(rows, counts)) / total
            for name in rows[0].classes
        }
        number = (
            0.0 if classes else sum(row.number * count for row, count in zip(rows, counts)) / total
        )
        return Told(rows[0].label, classes, number)

    return [joined(rows) for rows in zip(*(part for part, _ in parts))]


def best_place(scores: Sequence[float], larger: bool) -> int | None:
    """Where the best is, the first of equals; None where all are NaN."""
    known = [place for place, score in enumerate(scores) if not math.isnan(score)]
    return min(known, key=lambda place: -scores[place] if larger else scores[place], default=None)


def is_better(new: float, old: float, larger: bool) -> bool:
    """True if a metric is better than another, where larger ones are, or smaller ones; NaN is the
    worst.

    >>> is_better(0.9, 0.8, True), is_better(0.9, 0.8, False), is_better(1.0, float("nan"), False)
    (True, False, True)
    """
    return math.isnan(old) or (new > old if larger else new < old)
