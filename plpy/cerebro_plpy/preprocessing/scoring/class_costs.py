"""The costs of mistakes, which decide what class a model predicts.

The predicted class has the smallest expected cost under the calibrated probabilities (Elkan, "The
Foundations of Cost-Sensitive Learning", 2001, section 1). Between two classes this is a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows

Costs = Mapping[str, Mapping[str, float]]
"""Named costs, by the class of a row and then by the predicted class."""
NO_COSTS: Costs = {}
MAX_COST = 1e100
"""Largest cost, with which expected costs are finite."""


class NamedCost(NamedTuple):
    """The cost of a predicted class for rows of another class, or of the same one."""

    actual: int  # position of the class of the row
    predicted: int
    cost: float


def find_cost(costs: Costs, actual: str, predicted: str) -> float:
    """Return a cost; if it is not named, 0 for the right class, and 1 for another one.

    >>> costs = {"yes": {"no": 10.0}}
    >>> [find_cost(costs, *pair) for pair in (("yes", "no"), ("no", "yes"), ("no", "no"))]
    [10.0, 1.0, 0.0]
    """
    usual = 0.0 if predicted == actual else 1.0
    return costs.get(actual, {}).get(predicted, usual)


def is_cost(value: object) -> bool:
    """Return whether a value of JSON is a possible cost.

    >>> [is_cost(value) for value in (0, 2.5, -1, True, float("nan"), 10**400)]
    [True, True, False, False, False, False]
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value <= MAX_COST  # type: ignore[operator]


def read_costs(value: object) -> Costs:
    """Return the costs of stored JSON.

    Raises:
        ValueError: the value is malformed.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"costs are {value!r:.80}")
    costs = {}
    for actual, row_costs in value.items():
        if not isinstance(row_costs, Mapping) or not all(map(is_cost, row_costs.values())):
            raise ValueError(f"costs of {actual!r:.80} are {row_costs!r:.80}")
        costs[actual] = {predicted: float(cost) for predicted, cost in row_costs.items()}
    return costs


def list_costs(costs: Costs, classes: Sequence[str]) -> Iterator[NamedCost]:
    """Yield the named costs of known classes."""
    positions = {name: position for position, name in enumerate(classes)}
    for actual, row_costs in costs.items():
        for predicted, cost in row_costs.items():
            if actual in positions and predicted in positions:
                yield NamedCost(positions[actual], positions[predicted], cost)


def choose_class(probabilities: Mapping[str, float], costs: Costs) -> str:
    """Return the class with the smallest expected cost, the first of equal ones.

    >>> choose_class({"no": 0.8, "yes": 0.2}, {"yes": {"no": 10.0}})
    'yes'
    """
    classes = list(probabilities)
    # With usual costs alone, a prediction costs 1 less the probability of its class.
    expected = [-probability for probability in probabilities.values()]
    for actual, predicted, cost in list_costs(costs, classes):
        usual = 0.0 if actual == predicted else 1.0
        expected[predicted] += probabilities[classes[actual]] * (cost - usual)
    return classes[min(range(len(classes)), key=expected.__getitem__)]


def find_threshold(costs: Costs, classes: Sequence[str]) -> float | None:
    """Return the probability from which on it costs less to predict the second of two classes.

    Returns:
        None if there are more classes, or if both predictions always cost the same.

    >>> find_threshold({"yes": {"no": 9.0}}, ("no", "yes"))
    0.1
    """
    if len(classes) != 2:
        return None
    first, second = classes
    false_alarm = find_cost(costs, first, second) - find_cost(costs, first, first)
    omission = find_cost(costs, second, first) - find_cost(costs, second, second)
    total = false_alarm + omission
    return false_alarm / total if total else None


def average_cost(costs: Costs, rows: ScoredRows) -> float:
    """Return the mean cost of predictions.

    >>> from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow
    >>> even = {"a": 0.5, "b": 0.5}
    >>> rows = ScoredRows.collect(ScoredRow("a", even, prediction=name) for name in "ab")
    >>> average_cost({"a": {"b": 3.0}}, rows)
    1.5
    """
    pairs = zip(rows.labels, rows.list_predictions())
    return fsum(find_cost(costs, label, prediction) for label, prediction in pairs) / len(rows)
