"""The distribution that one entry of a parameter grid stands for: a list of choices, or a range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Union

from cerebro_plpy.configs.params.keras_names import guess_match
from cerebro_plpy.configs.params.literals import to_finite_number
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.limits import BIGINT
from cerebro_plpy.records import dataclass

DISTRIBUTIONS = ("linear", "log", "log_near_one")


@dataclass(frozen=True)
class Choices:
    """One of several distinct values, all equally likely."""

    values: tuple[object, ...]

    def draw(self, random: Random) -> object:
        return random.choice(self.values)


@dataclass(frozen=True)
class Range:
    """A number from `low` to `high`."""

    low: float
    high: float
    distribution: str
    """'linear' draws numbers uniformly, 'log' draws their logarithms uniformly, and 'log_near_one'
    draws the logarithms of their distances from one uniformly, as for momentum."""
    is_integer: bool = False

    @property
    def values(self) -> Sequence[object] | None:
        """Return all values; None if they cannot be counted."""
        if not self.is_integer:
            return None
        return range(int(self.low), int(self.high) + 1)

    def draw(self, random: Random) -> object:
        value = min(max(self._draw(random), self.low), self.high)
        return round(value) if self.is_integer else value

    def _draw(self, random: Random) -> float:
        if self.distribution == "linear":
            return random.uniform(self.low, self.high)
        if self.distribution == "log":
            return math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        return 1 - math.exp(random.uniform(math.log(1 - self.high), math.log(1 - self.low)))


Distribution = Union[Choices, Range]


def make_choices(name: str, values: Sequence[object]) -> Choices:
    """Return the distinct values of a list.

    Raises:
        InvalidParameter: the list is empty.
    """
    if not values:
        raise InvalidParameter(f"the list for '{name}' is empty", hint="Give at least one value.")
    return Choices(tuple({repr(value): value for value in values}.values()))


def read_distribution(name: str, values: Sequence[object], is_integer: bool) -> Distribution:
    """Return the distribution that the list of a parameter stands for.

    A list whose only text is its last element is a range, [low, high, distribution]; any other list
    has choices.

    Args:
        is_integer: the parameter accepts whole numbers only.

    Raises:
        InvalidParameter: the list is invalid; the texts are MADlib's.
    """
    is_text = [isinstance(value, str) for value in values]
    if len(values) > 1 and is_text[-1] and not any(is_text[:-1]):
        return _read_range(name, values, is_integer)
    return make_choices(name, values)


def _read_range(name: str, values: Sequence[object], is_integer: bool) -> Range:
    if len(values) != 3:
        raise InvalidParameter(
            f"DL: '{name}' should have exactly 3 elements if picking from a distribution",
            hint=f"Received {len(values)}: {values!r}.",
        )
    low = to_finite_number(values[0])
    high = to_finite_number(values[1])
    distribution = str(values[2])
    if distribution not in DISTRIBUTIONS:
        raise InvalidParameter(
            f"DL: Please choose a valid distribution type for '{name}': {list(DISTRIBUTIONS)}",
            hint=guess_match(distribution, DISTRIBUTIONS),
        )
    if low is None or high is None or not low < high:
        raise _bad_bounds(name, values, "two numbers, the lower one first")
    if distribution == "log" and low <= 0:
        raise _bad_bounds(name, values, "bounds above 0 for 'log'")
    if distribution == "log_near_one" and high >= 1:
        raise _bad_bounds(name, values, "bounds below 1 for 'log_near_one'")
    if is_integer:
        are_integers = isinstance(low, int) and isinstance(high, int)
        if not are_integers or max(-low, high) > BIGINT:
            raise _bad_bounds(name, values, f"whole numbers of at most {BIGINT} as bounds")
    return Range(low, high, distribution, is_integer)


def _bad_bounds(name: str, values: Sequence[object], expected: str) -> InvalidParameter:
    return InvalidParameter(
        f"DL: '{name}' should be of the format [lower_bound, upper_bound, distribution_type]",
        hint=f"Expected {expected}. Received {values!r}.",
    )
