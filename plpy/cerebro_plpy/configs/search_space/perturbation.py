"""The perturbation of a configuration: the parameters of a clone in population based training.

As in the experiments of its authors and in Ray Tune, a parameter is drawn anew with probability
0.25. Otherwise, a number is multiplied by 0.8 or 1.2 and kept within its range. A choice moves to a
neighbour in its list, or stays at the ends of the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from cerebro_plpy.configs.params.compile_params import UNQUOTED
from cerebro_plpy.configs.params.keras_names import find_optimizer
from cerebro_plpy.configs.params.literals import parse_call, parse_keywords
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution
from cerebro_plpy.configs.search_space.grid import ConfigRow, make_row
from cerebro_plpy.configs.search_space.space import Distributions, Space

RESAMPLE_PROBABILITY = 0.25
FACTORS = (0.8, 1.2)
LEARNING_RATE_NAMES = ("lr", "learning_rate")
"""Two names of one parameter."""


def perturb_config(space: Space, row: ConfigRow, random: Random) -> ConfigRow:
    """Return a configuration near another one.

    Parameters that are not in the space stay, and so does the model, whose state is continued.
    """
    compile_values = parse_keywords(row.compile_params, UNQUOTED)
    name, arguments = parse_call(str(compile_values.pop("optimizer", "RMSprop")))
    compile_values = {"optimizer": name, **arguments, **compile_values}
    return make_row(
        row.model_id,
        _perturb(_find_alternative(space, name), compile_values, random),
        _perturb(space.fit, parse_keywords(row.fit_params), random),
        space.functions,
    )


def _find_alternative(space: Space, optimizer: str) -> Distributions:
    """Return the alternative of an optimizer; an empty one if the space does not have it."""
    class_name = find_optimizer(optimizer)
    for alternative in space.alternatives:
        names = alternative.get("optimizer", Choices((optimizer,))).values or ()
        if class_name in [find_optimizer(str(name)) for name in names]:
            return alternative
    return {}


def _perturb(
    distributions: Distributions, values: Mapping[str, object], random: Random
) -> dict[str, object]:
    perturbed = dict(values)
    for key, distribution in distributions.items():
        if key in LEARNING_RATE_NAMES:
            for alias in LEARNING_RATE_NAMES:
                if alias != key and alias in perturbed:
                    perturbed[key] = perturbed.pop(alias)
        perturbed[key] = perturb_value(distribution, perturbed.get(key), random)
    return perturbed


def perturb_value(distribution: Distribution, value: object, random: Random) -> object:
    """Return a value near another one; any value if the distribution does not contain that."""
    if random.random() < RESAMPLE_PROBABILITY:
        return distribution.draw(random)
    if isinstance(distribution, Choices):
        if value not in distribution.values:
            return distribution.draw(random)
        index = distribution.values.index(value) + random.choice((-1, 1))
        return distribution.values[min(max(index, 0), len(distribution.values) - 1)]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return distribution.draw(random)
    factor = random.choice(FACTORS)
    if distribution.distribution == "log_near_one":
        scaled = 1 - (1 - value) * factor
    else:
        scaled = value * factor
    clipped = min(max(scaled, distribution.low), distribution.high)
    if distribution.is_integer:
        return round(clipped)
    return clipped
