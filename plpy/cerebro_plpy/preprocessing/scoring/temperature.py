"""The temperature of class probabilities, which makes them as certain as they are right.

Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks" (2017), section 4.2:
the logarithms of probabilities are divided by one number, which minimises the log loss of rows
that the model was not trained on. Trainers and exported models apply it in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from math import exp, fsum, log
from operator import mul

from cerebro_plpy.preprocessing.scoring.metrics import MIN_PROBABILITY, log_loss
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows

NEUTRAL = 1.0
BOUNDS = (0.05, 20.0)
"""The smallest and the largest temperature."""
MAX_NUMBERS = 40_000
"""Probabilities that are searched; of more, rows at equal distances are."""
MIN_ROWS = 200
"""Rows that are searched even if they have more probabilities."""
MAX_STEPS = 40
PRECISION = 1e-6
"""Relative change at which the search ends."""
DIGITS = 6
Logits = tuple[int, Sequence[float]]
"""The position of a row's label, and the logarithms of its probabilities less the largest."""


def fit_temperature(rows: ScoredRows) -> float:
    """Return the temperature of a model; 1 if another one does not lower the log loss.

    Each half of the rows is compared under the temperature of the other half, so that one is not
    found in noise.
    """
    sample = _select_rows(rows)
    halves = sample[::2], sample[1::2]
    if not all(halves):
        return NEUTRAL
    loss = 0.0
    for searched, compared in (halves, halves[::-1]):
        temperature = _search(searched)
        heated = ScoredRows.collect(apply_temperature(row, temperature) for row in compared)
        loss += log_loss(heated) * len(compared)
    if not loss < log_loss(sample) * len(sample):
        return NEUTRAL
    return _search(sample)


def apply_temperature(row: ScoredRow, temperature: float) -> ScoredRow:
    """Return a row with the probabilities of a temperature; their order stays.

    >>> heated = apply_temperature(ScoredRow("a", {"a": 0.9, "b": 0.1}), 2.0)
    >>> {name: round(probability, 6) for name, probability in heated.classes.items()}
    {'a': 0.75, 'b': 0.25}
    """
    if temperature == NEUTRAL or not all(map(math.isfinite, row.classes.values())):
        return row
    return row._replace(classes=heat_classes(row.classes, temperature))


def heat_classes(classes: Mapping[str, float], temperature: float) -> dict[str, float]:
    """Return the probabilities of classes under a temperature."""
    powers = [exp(logit / temperature) for logit in _take_logarithms(classes.values())]
    total = fsum(powers)
    return {name: power / total for name, power in zip(classes, powers)}


def _take_logarithms(probabilities: Iterable[float]) -> list[float]:
    """Return logarithms less the largest."""
    logarithms = [log(max(probability, MIN_PROBABILITY)) for probability in probabilities]
    largest = max(logarithms)
    return [logarithm - largest for logarithm in logarithms]


def _select_rows(rows: ScoredRows) -> ScoredRows:
    """Return rows whose classes are known, at equal distances."""
    usable = ScoredRows.collect(
        row
        for row in rows
        if row.label in row.classes and all(map(math.isfinite, row.classes.values()))
    )
    if not usable:
        return usable
    count = max(MIN_ROWS, MAX_NUMBERS // len(usable.classes))
    return usable[:: -(-len(usable) // count)]


def _search(rows: ScoredRows) -> float:
    """Return the temperature with the smallest log loss.

    The loss is convex in the inverse of the temperature, so that its slope has one zero. Newton's
    steps find it; a step that leaves the bounds, which close in on it, is replaced by their middle.
    """
    logits = [
        (list(row.classes).index(row.label), _take_logarithms(row.classes.values())) for row in rows
    ]
    low = 1 / BOUNDS[1]
    high = 1 / BOUNDS[0]
    inverse = NEUTRAL
    for _ in range(MAX_STEPS):
        slope, curvature = _derive(logits, inverse)
        if slope > 0:
            high = inverse
        else:
            low = inverse
        previous = inverse
        inverse = previous - slope / curvature if curvature else math.inf
        if not low < inverse < high:
            inverse = math.sqrt(low * high)
        if abs(inverse - previous) <= PRECISION * previous:
            break
    return float(f"{1 / inverse:.{DIGITS}g}")


def _derive(rows: Sequence[Logits], inverse: float) -> tuple[float, float]:
    """Return the first and the second derivative of the log loss by the inverse temperature."""
    slopes: list[float] = []
    curvatures: list[float] = []
    for label, logits in rows:
        powers = [exp(inverse * logit) for logit in logits]
        total = sum(powers)
        mean = sum(map(mul, powers, logits)) / total
        square = sum(power * logit * logit for power, logit in zip(powers, logits)) / total
        slopes.append(mean - logits[label])
        curvatures.append(square - mean * mean)
    return fsum(slopes), fsum(curvatures)
