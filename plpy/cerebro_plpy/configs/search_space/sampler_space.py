"""A search space as a sampler sees it, and the points that it suggests as configurations.

Choices are passed as their positions in the list, so that a sampler sees numbers only. A range with
values near one is passed as the distance from one, whose logarithm is uniform.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple, Protocol

from cerebro_plpy.configs.params.compile_params import UNQUOTED
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.keras_names import find_optimizer
from cerebro_plpy.configs.params.literals import parse_call, parse_keywords
from cerebro_plpy.configs.search_space.distributions import Choices, Distribution, Range
from cerebro_plpy.configs.search_space.grid import ConfigRow, make_row
from cerebro_plpy.configs.search_space.perturbation import LEARNING_RATE_NAMES, perturb_config
from cerebro_plpy.configs.search_space.space import Space, wrap_metric
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.records import dataclass

Row = Mapping[str, Any]  # of a model selection table, by column
Point = Mapping[str, Any]  # {"alternative": number, "values": {dimension: number}}
OPTIMIZER = "optimizer"
DEFAULT_OPTIMIZER = "RMSprop"


class PointSpace(Protocol):
    """A search space as a sampler sees it."""

    def describe(self) -> list[list[dict[str, object]]]:
        """Return the dimensions of each alternative; those with a single value are left out."""

    def make_row(self, point: Point) -> Row:
        """Return the configuration at a suggested point."""

    def find_point(self, row: Row) -> Point | None:
        """Return the point of a configuration; None if that is not in the space."""

    def perturb(self, config: Config, random: Random) -> Row:
        """Return a configuration near another one that can continue from its state."""


class Dimension(NamedTuple):
    """A parameter that is drawn."""

    name: str
    part: str  # "compile", "fit" or "model"
    key: str
    distribution: Distribution


@dataclass(frozen=True)
class ParameterSpace:
    """A `PointSpace` of compile parameters, fit parameters and models."""

    space: Space

    def describe(self) -> list[list[dict[str, object]]]:
        """See `PointSpace`."""
        return describe_space(self.space)

    def make_row(self, point: Point) -> Row:
        """See `PointSpace`."""
        return make_config_row(self.space, point)._asdict()

    def find_point(self, row: Row) -> Point | None:
        """See `PointSpace`; if alternatives overlap, the point is in the first one."""
        try:
            parts = _read_parts(row)
        except (InvalidParameter, InvalidText):
            return None  # values that are not plain, such as a learning rate schedule
        for number in range(len(self.space.alternatives)):
            point = _find_point(self.space, number, parts)
            if point is not None:
                return point
        return None

    def perturb(self, config: Config, random: Random) -> Row:
        """See `PointSpace`."""
        row = ConfigRow(config.model_id, config.compile_text, config.fit_text)
        return perturb_config(self.space, row, random)._asdict()


def describe_space(space: Space) -> list[list[dict[str, object]]]:
    """Return the dimensions of each alternative; those with a single value are left out."""
    return [
        [
            {"name": dimension.name, **describe_distribution(dimension.distribution)}
            for dimension in _list_dimensions(space, number)
            if not is_constant(dimension.distribution)
        ]
        for number in range(len(space.alternatives))
    ]


def make_config_row(space: Space, point: Point) -> ConfigRow:
    """Return the configuration at a suggested point."""
    parts: dict[str, dict[str, object]] = {"compile": {}, "fit": {}, "model": {}}
    for dimension in _list_dimensions(space, point["alternative"]):
        distribution = dimension.distribution
        number = 0 if is_constant(distribution) else point["values"][dimension.name]
        parts[dimension.part][dimension.key] = to_value(distribution, number)
    return make_row(parts["model"]["id"], parts["compile"], parts["fit"], space.functions)


def describe_config(config: Config) -> Row:
    """Return the parameters, or the template, that make a configuration."""
    return {
        "model_id": config.model_id,
        "compile_params": config.compile_text,
        "fit_params": config.fit_text,
        "template": config.template,
        "params": config.params,
    }


def _read_parts(row: Row) -> dict[str, dict[str, Any]]:
    """Return the parameters of a row, in one spelling if there are several."""
    compile_values = parse_keywords(row["compile_params"], UNQUOTED)
    name, arguments = parse_call(str(compile_values.pop(OPTIMIZER, DEFAULT_OPTIMIZER)))
    parts: dict[str, dict[str, Any]] = {
        "compile": {OPTIMIZER: name, **arguments, **compile_values},
        "fit": parse_keywords(row["fit_params"]),
        "model": {"id": row["model_id"]},
    }
    return {
        part: {_normalize_key(key): _normalize_value(key, value) for key, value in values.items()}
        for part, values in parts.items()
    }


def _find_point(space: Space, number: int, parts: Mapping[str, Row]) -> Point | None:
    """Return the point of one alternative that has exactly these parameters; None without one."""
    dimensions = _list_dimensions(space, number)
    dimension_keys = {(dimension.part, _normalize_key(dimension.key)) for dimension in dimensions}
    present = {(part, key) for part, values in parts.items() for key in values}
    optional = set()
    if parts["compile"][OPTIMIZER] == DEFAULT_OPTIMIZER:
        optional.add(("compile", OPTIMIZER))
    if not present - optional <= dimension_keys <= present:
        return None
    numbers: dict[str, Any] = {}
    for dimension in dimensions:
        distribution = dimension.distribution
        key = dimension.key
        if isinstance(distribution, Choices):
            normalized = tuple(_normalize_value(key, value) for value in distribution.values)
            distribution = Choices(normalized)
        position = to_number(distribution, parts[dimension.part][_normalize_key(key)])
        if position is None:
            return None
        if not is_constant(dimension.distribution):
            numbers[dimension.name] = position
    return {"alternative": number, "values": numbers}


def _normalize_key(key: str) -> str:
    if key in LEARNING_RATE_NAMES:
        return LEARNING_RATE_NAMES[0]
    return key


def _normalize_value(key: str, value: Any) -> Any:
    if key == OPTIMIZER:
        return find_optimizer(str(value)) or value
    return wrap_metric(key, value)


def _list_dimensions(space: Space, number: int) -> list[Dimension]:
    """Return the dimensions of an alternative.

    A dimension that all alternatives have with equal distributions has one name, so that a sampler
    learns it once.
    """
    dimensions = []
    for key, distribution in space.alternatives[number].items():
        name = f"compile/{number}/{key}"
        if all(alternative.get(key) == distribution for alternative in space.alternatives):
            name = f"compile/{key}"
        dimensions.append(Dimension(name, "compile", key, distribution))
    for key, distribution in space.fit.items():
        dimensions.append(Dimension(f"fit/{key}", "fit", key, distribution))
    dimensions.append(Dimension("model", "model", "id", space.models))
    return dimensions


def is_constant(distribution: Distribution) -> bool:
    """Return True if a distribution has a single value."""
    return isinstance(distribution, Choices) and len(distribution.values) == 1


def describe_distribution(distribution: Distribution) -> dict[str, object]:
    """Return a distribution as a sampler sees it."""
    if isinstance(distribution, Choices):
        return {"kind": "choice", "count": len(distribution.values)}
    low = distribution.low
    high = distribution.high
    if distribution.distribution == "log_near_one":
        low = 1 - distribution.high
        high = 1 - distribution.low
    kind = "whole" if distribution.is_integer else "real"
    is_log = distribution.distribution != "linear"
    return {"kind": kind, "low": low, "high": high, "log": is_log}


def to_value(distribution: Distribution, number: Any) -> object:
    """Return the value that a suggested number stands for."""
    if isinstance(distribution, Choices):
        return distribution.values[number]
    # The subtraction may exceed the bounds by rounding.
    return min(max(_mirror(distribution, number), distribution.low), distribution.high)


def _mirror(bounds: Range, number: Any) -> Any:
    """Return the distance from one of a value near one, and the value of such a distance."""
    if bounds.distribution == "log_near_one":
        return 1 - number
    return number


def to_number(distribution: Distribution, value: Any) -> Any:
    """Return the number that stands for a value; None if it cannot be drawn.

    >>> to_number(Choices((8, 16)), 16), to_number(Range(0.5, 0.99, "log_near_one"), 0.75)
    (1, 0.25)
    >>> to_number(Choices((8,)), 9)
    """
    if isinstance(distribution, Choices):
        if value not in distribution.values:
            return None
        return distribution.values.index(value)
    if not isinstance(value, (int, float)) or not distribution.low <= value <= distribution.high:
        return None
    if distribution.is_integer and value % 1:
        return None
    return _mirror(distribution, value)
