"""Choose the class that a model predicts: by a threshold, by costs, or the most probable one.

The steps are those of the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


def choose_classes(description: Mapping[str, Any], probabilities: Floats) -> Positions:
    """Return the positions of the predicted classes.

    Args:
        description: of the model.
        probabilities: shape (rows, classes).
    """
    threshold = description.get("threshold")
    if threshold is not None:
        return np.asarray(probabilities[:, 1] >= threshold, dtype=np.int64)
    costs = description.get("costs")
    if costs is not None:
        expected = _compute_expected_costs(description["classes"], costs, probabilities)
        return np.asarray(expected.argmin(axis=1))
    return np.asarray(probabilities.argmax(axis=1))


def _compute_expected_costs(
    classes: Sequence[str], costs: Mapping[str, Mapping[str, float]], probabilities: Floats
) -> Floats:
    """Return the expected cost of each prediction less a constant, shape (rows, classes)."""
    # With usual costs alone, a prediction costs 1 less the probability of its class.
    expected = -probabilities
    for actual, named_costs in costs.items():
        for predicted, cost in named_costs.items():
            usual = 0.0 if actual == predicted else 1.0
            surplus = probabilities[:, classes.index(actual)] * (cost - usual)
            expected[:, classes.index(predicted)] += surplus
    return expected
