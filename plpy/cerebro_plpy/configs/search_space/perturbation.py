"""A configuration near another one: what population based training makes of the parameters of a
clone.

As in its authors' experiments and in Ray Tune, a parameter is drawn anew with probability 0.25;
else a number is multiplied by 0.8 or 1.2 and kept within its range, and a choice moves to a
neighbour in its list, or stays at its ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from cerebro_plpy.configs.params.compile_params import UNQUOTED
from cerebro_plpy.configs.params.keras_names import find_optimizer
from cerebro_plpy.configs.params.literals import call, keywords
from cerebro_plpy.configs.search_space.distributions import Choices, Draw
from cerebro_plpy.configs.search_space.grid import ConfigRow, made_row
from cerebro_plpy.configs.search_space.space import Draws, Space

RESAMPLED = 0.25
FACTORS = (0.8, 1.2)
RATES = ("lr", "learning_rate")
"""Two names of one parameter."""


def explored(space: Space, row: ConfigRow, random: Random) -> ConfigRow:
    """A configuration like one, but for what the space names; its model stays, because its state is
    gone on from.
    """
    compiled = keywords(row.compile_params, UNQUOTED)
    name, arguments = call(str(compiled.pop("optimizer", "RMSprop")))
    near = _moved(_alternative(space, name), {"optimizer": name, **arguments, **compiled}, random)
    return made_row(
        row.model_id, near, _moved(space.fit, keywords(row.fit_params), random), space.functions
    )


def _alternative(space: Space, optimizer: str) -> Draws:
    """What the space says of that optimizer; nothing where it does not name it."""
    for each in space.alternatives:
        named = each.get("optimizer", Choices((optimizer,)))
        if find_optimizer(optimizer) in [
            find_optimizer(str(value)) for value in named.values or ()
        ]:
            return each
    return {}


def _moved(draws: Draws, values: Mapping[str, object], random: Random) -> dict[str, object]:
    found = dict(values)
    for key, draw in draws.items():
        for other in RATES if key in RATES else ():
            if other != key and other in found:
                found[key] = found.pop(other)
        found[key] = move(draw, found.get(key), random)
    return found


def move(draw: Draw, value: object, random: Random) -> object:
    """A value near one, or any where there is none that the draw knows."""
    if random.random() < RESAMPLED:
        return draw.draw(random)
    if isinstance(draw, Choices):
        if value not in draw.values:
            return draw.draw(random)
        place = draw.values.index(value) + random.choice((-1, 1))
        return draw.values[min(max(place, 0), len(draw.values) - 1)]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return draw.draw(random)
    factor = random.choice(FACTORS)
    moved = 1 - (1 - value) * factor if draw.distribution == "log_near_one" else value * factor
    within = min(max(moved, draw.low), draw.high)
    return round(within) if draw.whole else within
