"""The argument `costs` of `cerebro.train`: the costs of mistakes, by class and predicted class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.json_arguments import read_json
from cerebro_plpy.errors import InvalidParameter, quote_text
from cerebro_plpy.preprocessing.learning.class_notices import name_few
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, Target
from cerebro_plpy.preprocessing.scoring.class_costs import (
    MAX_COST,
    NO_COSTS,
    Costs,
    find_cost,
    find_threshold,
    is_cost,
)

METRIC = "log_loss"
"""Metric by which models with costs are compared, because costs need good probabilities."""
EXAMPLE = 'For example {"ill": {"well": 20}}: it costs 20 to predict well for ill.'


def parse_costs(module: str, text: str | None) -> Costs:
    """Parse the argument, as far as that needs no table; NULL stands for no costs.

    Raises:
        InvalidParameter: it is not an object of objects of costs.
    """
    if text is None:
        return NO_COSTS
    value = read_json("costs", text)
    if not isinstance(value, Mapping):
        raise InvalidParameter(
            f"{module} error: costs is {text!r:.80}; expected a JSON object.", hint=EXAMPLE
        )
    return {actual: _parse_row(module, actual, row) for actual, row in value.items()}


def _parse_row(module: str, actual: str, value: object) -> Mapping[str, float]:
    """Return the named costs of a class."""
    if not isinstance(value, Mapping):
        raise InvalidParameter(
            f"{module} error: costs has {_shorten(value)} for class {actual!r}; expected an object "
            "of costs by the predicted class.",
            hint=EXAMPLE,
        )
    for predicted, cost in value.items():
        if not is_cost(cost):
            raise InvalidParameter(
                f"{module} error: costs has {_shorten(cost)} for {predicted!r} predicted for class "
                f"{actual!r}; expected a number from 0 to {MAX_COST:g}.",
                hint=EXAMPLE,
            )
    return {predicted: float(cost) for predicted, cost in value.items()}


def _shorten(value: Any) -> str:
    return f"{json.dumps(value):.40}"


def check_costs(module: str, target: Target, costs: Costs) -> None:
    """Check that a target has the classes of costs, and that no mistake is cheaper than none.

    Raises:
        InvalidParameter: otherwise.
    """
    if not costs:
        return
    if target.task != CLASSIFICATION:
        raise InvalidParameter(
            f"{module} error: costs are of classes, but {target.column.name} is predicted as a "
            "number.",
            hint="Leave costs out, or write task => 'classification'.",
        )
    names = dict.fromkeys(name for actual, row in costs.items() for name in (actual, *row))
    unknown = [name for name in names if name not in target.values]
    if unknown:
        raise InvalidParameter(
            f"{module} error: costs names {name_few(unknown)}, which {target.column.name} does not "
            "have in training rows.",
            hint=f"Its classes are {name_few(target.values)}.",
        )
    for actual, row in costs.items():
        right = find_cost(costs, actual, actual)
        for predicted in (*row, *target.values):
            cost = find_cost(costs, actual, predicted)
            if cost < right:
                raise InvalidParameter(
                    f"{module} error: costs has {right:g} for class {actual!r} if it is predicted, "
                    f"but {cost:g} if {predicted!r} is: a mistake must not be cheaper.",
                    hint="Name only what mistakes cost more, such as "
                    f"costs => {quote_text(json.dumps({actual: {predicted: right + 1}}))}.",
                )


def describe_prediction(costs: Costs, classes: Sequence[str]) -> str:
    """Return what class is predicted, for a message.

    >>> describe_prediction({"yes": {"no": 9.0}}, ("no", "yes"))
    "'yes' is predicted from a probability of 0.1 on"
    """
    threshold = find_threshold(costs, classes)
    if threshold is None:
        return "the class with the smallest expected cost is predicted"
    return f"{classes[1]!r} is predicted from a probability of {threshold:.4g} on"
