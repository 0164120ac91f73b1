"""Fields that most templates have, each with its own default and range.

Without a range, a search does not change the field.
"""

from __future__ import annotations

from cerebro_plpy.configs.search_space.distributions import Choices, Distribution, Range
from cerebro_plpy.configs.templates.layers.model_io import IDENTITY, LOG, Floats, Head
from cerebro_plpy.configs.templates.template import Field, Params
from cerebro_plpy.records import replace


def make_learning_rate(
    default: float, low: float, high: float, floats: float | None = None
) -> Field:
    """Return the field `lr`.

    Args:
        floats: default for float targets, if it differs.
    """
    distribution = Range(low, high, "log")
    limits = (1e-8, 100.0)
    return Field("lr", "The learning rate", default, distribution, limits=limits, floats=floats)


def _range_or_constant(default: float, low: float, high: float, scale: str) -> Distribution:
    """Return the distribution of a search; without an upper bound, the default alone."""
    if high:
        return Range(low, high, scale)
    return Choices((default,))


def make_weight_decay(default: float, low: float = 0.0, high: float = 0.0) -> Field:
    """Return the field `weight_decay`."""
    distribution = _range_or_constant(default, low, high, "log")
    meaning = "How fast weights shrink, times lr"
    return Field("weight_decay", meaning, default, distribution, limits=(0.0, 10.0))


def make_dropout(
    default: float,
    low: float = 0.0,
    high: float = 0.0,
    name: str = "dropout",
    meaning: str = "The share of units left out",
) -> Field:
    """Return a field with a dropout rate."""
    distribution = _range_or_constant(default, low, high, "linear")
    return Field(name, meaning, default, distribution, limits=(0.0, 0.95))


def make_width(
    meaning: str, choices: tuple[int, ...], default: int, largest: int = 65_536
) -> Field:
    """Return the field `width`."""
    return Field("width", meaning, default, Choices(choices), limits=(1, largest), is_whole=True)


def make_depth(meaning: str, default: int, low: int, high: int, largest: int = 16) -> Field:
    """Return the field `depth`."""
    distribution = Range(low, high, "linear", is_integer=True)
    return Field("depth", meaning, default, distribution, limits=(1, largest), is_whole=True)


def apply_link(head: Head, params: Params) -> Head:
    """Return the head with the link of a configuration.

    Older configurations have no link. Classes and targets without logarithms have none either.
    """
    if not isinstance(head, Floats) or params.get(LINK.name) != LOG:
        return head
    if not all(target.has_logarithms for target in head.targets):
        return head
    return replace(head, link=LOG)


LINK = Field(
    "link",
    "How a number is predicted: as it is, or by its logarithm, for skewed positive numbers",
    IDENTITY,
    Choices((IDENTITY, LOG)),
    words=(IDENTITY, LOG),
    for_skewed=True,
)
"""The link of generalized linear models; with the logarithm, the loss is Poisson's deviance."""
