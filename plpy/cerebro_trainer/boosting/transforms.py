"""From scores to outputs: numbers within their bounds, or probabilities of classes."""

from __future__ import annotations

import numpy as np

from cerebro_trainer.boosting.model.spec import TreesSpec
from cerebro_trainer.data.arrays import Floats

MAX_SCORE = 700.0
"""Scores of classes beyond this are cut, because their exponential would be infinite."""


def compute_outputs(spec: TreesSpec, scores: Floats) -> Floats:
    """Return the outputs of rows, shape (rows, units)."""
    if spec.has_logarithms:
        return _exponentiate(spec, scores)
    if spec.units == 1:
        if spec.low is not None:
            scores = np.maximum(scores, spec.low)
        if spec.high is not None:
            scores = np.minimum(scores, spec.high)
        return scores
    bounded = np.clip(scores, -MAX_SCORE, MAX_SCORE)
    if spec.outputs == 1:
        second = 1.0 / (1.0 + np.exp(-bounded))
        return np.concatenate([1.0 - second, second], axis=1)
    exponentials = np.exp(bounded - bounded.max(axis=1, keepdims=True))
    result: Floats = exponentials / exponentials.sum(axis=1, keepdims=True)
    return result


def lowest_number(spec: TreesSpec) -> float:
    """Return the lowest number, which a link of logarithms needs."""
    assert spec.low is not None
    return spec.low


def _exponentiate(spec: TreesSpec, scores: Floats) -> Floats:
    """Return low + exp(score), and at most the highest number, as networks do."""
    assert spec.high is not None
    low = lowest_number(spec)
    ceiling = np.log(spec.high - low)
    return np.minimum(low + np.exp(np.minimum(scores, ceiling)), spec.high)


def _average_slope(spec: TreesSpec, begin: Floats, end: Floats) -> Floats:
    """Return the differences of numbers, divided by those of their scores."""
    way = end - begin
    change = _exponentiate(spec, end) - _exponentiate(spec, begin)
    is_way = way != 0
    slopes: Floats = np.where(is_way, change / np.where(is_way, way, 1.0), 0.0)
    return slopes


def average_slopes(spec: TreesSpec, begin: Floats, end: Floats, units: Floats) -> Floats:
    """Return the mean slopes of a weighted sum of outputs, on the straight way between two scores.

    The differences of the scores times these slopes add up to the difference of the sums.

    Args:
        begin: scores of a baseline, shape (outputs,).
        end: scores of rows, shape (rows, outputs).
        units: weights of the units in the output, shape (rows, units).

    Returns:
        The slopes, shape (rows, outputs).
    """
    if spec.has_logarithms:
        return units * _average_slope(spec, begin, end)
    if spec.units == 1:
        return units
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    slopes = np.zeros_like(end)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        outputs = compute_outputs(spec, begin + point * (end - begin))
        if spec.outputs == 1:
            sign = units[:, 1:] - units[:, :1]
            slopes += weight * sign * outputs[:, :1] * outputs[:, 1:]
        else:
            total = (outputs * units).sum(axis=1, keepdims=True)
            slopes += weight * outputs * (units - total)
    return slopes


POINTS = 32
"""Points of a way at which slopes are computed."""
