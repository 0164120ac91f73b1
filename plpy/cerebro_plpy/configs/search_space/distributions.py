"""The values that one entry of a parameter grid stands for: a list of choices, or a range to draw
from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Union

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.params.literals import finite_number
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import BIGINT
from cerebro_plpy.records import dataclass

DISTRIBUTIONS = ("linear", "log", "log_near_one")


@dataclass(frozen=True)
class Choices:
    """One of several values, each as likely as the others; equal ones count once."""

    values: tuple[object, ...]

    def draw(self, random: Random) -> object:
        return random.choice(self.values)


@dataclass(frozen=True)
class Range:
    """A number from `low` to `high`, rounded where `whole`.

    'linear' draws it uniformly, 'log' draws its logarithm uniformly, and 'log_near_one' draws the
    logarithm of its distance from one uniformly (for momentum and the like).
    """

    low: float
    high: float
    distribution: str
    whole: bool = False

    @property
    def values(self) -> Sequence[object] | None:
        """All values where they can be counted, else None."""
        return range(int(self.low), int(self.high) + 1) if self.whole else None

    def draw(self, random: Random) -> object:
        value = min(max(self._draw(random), self.low), self.high)
        return round(value) if self.whole else value

    def _draw(self, random: Random) -> float:
        if self.distribution == "linear":
            return random.uniform(self.low, self.high)
        if self.distribution == "log":
            return math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        return 1 - math.exp(random.uniform(math.log(1 - self.high), math.log(1 - self.low)))


Draw = Union[Choices, Range]


def choices(name: str, values: Sequence[object]) -> Choices:
    """The distinct values of a list; raises InvalidParameter if it is empty."""
    if not values:
        raise InvalidParameter(f"the list for '{name}' is empty", hint="Give at least one value.")
    return Choices(tuple({repr(value): value for value in values}.values()))


def read_draw(name: str, values: Sequence[object], whole: bool) -> Draw:
    """What the list given for a parameter stands for.

    A list whose only text is its last element is a range, [low, high, distribution]; all others are
    choices. `whole` says that the parameter takes whole numbers only. Raises InvalidParameter with
    MADlib's texts.
    """
    if (
        len(values) > 1
        and isinstance(values[-1], str)
        and not any(isinstance(v, str) for v in values[:-1])
    ):
        return _range(name, values, whole)
    return choices(name, values)


def _range(name: str, values: Sequence[object], whole: bool) -> Range:
    if len(values) != 3:
        raise InvalidParameter(
            f"DL: '{name}' should have exactly 3 elements if picking from a distribution",
            hint=f"Received {len(values)}: {values!r}.",
        )
    low, high, distribution = finite_number(values[0]), finite_number(values[1]), str(values[2])
    if distribution not in DISTRIBUTIONS:
        raise InvalidParameter(
            f"DL: Please choose a valid distribution type for '{name}': {list(DISTRIBUTIONS)}",
            hint=near_matches(distribution, DISTRIBUTIONS),
        )
    if low is None or high is None or not low < high:
        raise _bad_bounds(name, values, "two numbers, the lower one first")
    if distribution == "log" and low <= 0:
        raise _bad_bounds(name, values, "bounds above 0 for 'log'")
    if distribution == "log_near_one" and high >= 1:
        raise _bad_bounds(name, values, "bounds below 1 for 'log_near_one'")
    if whole and not (isinstance(low, int) and isinstance(high, int) and max(-low, high) <= BIGINT):
        raise _bad_bounds(name, values, f"whole numbers of at most {BIGINT} as bounds")
    return Range(low, high, distribution, whole)


def _bad_bounds(name: str, values: Sequence[object], expected: str) -> InvalidParameter:
    return InvalidParameter(
        f"DL: '{name}' should be of the format [lower_bound, upper_bound, distribution_type]",
        hint=f"Expected {expected}. Received {values!r}.",
    )
