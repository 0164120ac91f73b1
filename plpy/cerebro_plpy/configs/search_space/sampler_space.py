"""A search space as a sampler wants it described, and a point that it suggests as a configuration.

Choices travel as their numbers in the list, so that a sampler sees numbers only. A range whose
values lie near one travels as the distance from one, which is drawn by its logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple, Protocol

from cerebro_plpy.configs.params.compile_params import UNQUOTED
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.keras_names import find_optimizer
from cerebro_plpy.configs.params.literals import call, keywords
from cerebro_plpy.configs.search_space.distributions import Choices, Draw, Range
from cerebro_plpy.configs.search_space.grid import ConfigRow, made_row
from cerebro_plpy.configs.search_space.perturbation import RATES, explored
from cerebro_plpy.configs.search_space.space import Space
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.records import dataclass

Point = Mapping[str, Any]  # {"alternative": number, "values": {dimension: number}}
OPTIMIZER, USUAL_OPTIMIZER = "optimizer", "RMSprop"
LISTED = ("metrics", "weighted_metrics")
"""Parameters that are lists, of which one name stands for a list of it."""


class PointSpace(Protocol):
    """A space that a search draws from, as a sampler has it."""

    def described(self) -> list[list[dict[str, object]]]:
        """For each alternative its dimensions, but those with one value only."""
        ...

    def row(self, point: Point) -> Mapping[str, Any]:
        """What makes the configuration that a suggested point stands for."""
        ...

    def point(self, row: Mapping[str, Any]) -> Point | None:
        """The other way round: where a configuration lies that a row says; None where that is not
        in the space.
        """
        ...

    def near(self, config: Config, random: Random) -> Mapping[str, Any]:
        """What makes a configuration that is near another one, and can go on from its state."""
        ...


class Dimension(NamedTuple):
    """What is drawn for one key of the compile parameters, of the fit parameters, or for the
    model.
    """

    name: str
    part: str
    key: str
    draw: Draw


@dataclass(frozen=True)
class ParameterSpace:
    """A `PointSpace` of compile parameters, fit parameters and models."""

    space: Space

    def described(self) -> list[list[dict[str, object]]]:
        """See `PointSpace`."""
        return describe(self.space)

    def row(self, point: Point) -> Mapping[str, Any]:
        """See `PointSpace`."""
        return config_row(self.space, point)._asdict()

    def point(self, row: Mapping[str, Any]) -> Point | None:
        """See `PointSpace`: of alternatives that overlap, the first."""
        try:
            parts = _parts(row)
        except (InvalidParameter, InvalidText):
            return None  # no plain values, such as a rate that falls by a schedule
        points = (
            _point(self.space, number, parts) for number in range(len(self.space.alternatives))
        )
        return next((point for point in points if point is not None), None)

    def near(self, config: Config, random: Random) -> Mapping[str, Any]:
        """See `PointSpace`."""
        row = ConfigRow(config.model_id, config.compile_text, config.fit_text)
        return explored(self.space, row, random)._asdict()


def describe(space: Space) -> list[list[dict[str, object]]]:
    """For each alternative its dimensions, but those with one value only."""
    return [
        [
            {"name": d.name, **described(d.draw)}
            for d in _dimensions(space, number)
            if not is_constant(d.draw)
        ]
        for number in range(len(space.alternatives))
    ]


def config_row(space: Space, point: Point) -> ConfigRow:
    """The configuration that a suggested point stands for."""
    parts: dict[str, dict[str, object]] = {"compile": {}, "fit": {}, "model": {}}
    for dimension in _dimensions(space, point["alternative"]):
        number = 0 if is_constant(dimension.draw) else point["values"][dimension.name]
        parts[dimension.part][dimension.key] = value_at(dimension.draw, number)
    return made_row(parts["model"]["id"], parts["compile"], parts["fit"], space.functions)


def row_of(config: Config) -> Mapping[str, Any]:
    """What makes a configuration of parameters, or of a template."""
    texts = {"compile_params": config.compile_text, "fit_params": config.fit_text}
    return {
        "model_id": config.model_id,
        **texts,
        "template": config.template,
        "params": config.params,
    }


def _parts(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The parameters of a row, with one spelling for what has several."""
    compiled = keywords(row["compile_params"], UNQUOTED)
    name, arguments = call(str(compiled.pop(OPTIMIZER, USUAL_OPTIMIZER)))
    compiled = {OPTIMIZER: name, **arguments, **compiled}
    parts = {
        "compile": compiled,
        "fit": keywords(row["fit_params"]),
        "model": {"id": row["model_id"]},
    }
    return {
        part: {_spelt(key): _usual(key, value) for key, value in its.items()}
        for part, its in parts.items()
    }


def _point(space: Space, number: int, parts: Mapping[str, Mapping[str, Any]]) -> Point | None:
    """The point of one alternative that has all of these parameters, and no others."""
    dimensions, values = _dimensions(space, number), dict[str, Any]()
    named = {(d.part, _spelt(d.key)) for d in dimensions}
    written = {(part, key) for part, its in parts.items() for key in its}
    unsaid = {("compile", OPTIMIZER)} if parts["compile"][OPTIMIZER] == USUAL_OPTIMIZER else set()
    if not written - unsaid <= named <= written:
        return None
    for dimension in dimensions:
        draw, key = dimension.draw, dimension.key
        if isinstance(draw, Choices):
            draw = Choices(tuple(_usual(key, value) for value in draw.values))
        found = number_at(draw, parts[dimension.part][_spelt(key)])
        if found is None:
            return None
        if not is_constant(dimension.draw):
            values[dimension.name] = found
    return {"alternative": number, "values": values}


def _spelt(key: str) -> str:
    return RATES[0] if key in RATES else key


def _usual(key: str, value: Any) -> Any:
    if key == OPTIMIZER:
        return find_optimizer(str(value)) or value
    return [value] if key in LISTED and isinstance(value, str) else value


def _dimensions(space: Space, number: int) -> list[Dimension]:
    """The dimensions of an alternative; one that is drawn alike in all of them has one name, and is
    learnt once.
    """
    found = []
    for key, draw in space.alternatives[number].items():
        shared = all(other.get(key) == draw for other in space.alternatives)
        found.append(
            Dimension(
                f"compile/{key}" if shared else f"compile/{number}/{key}", "compile", key, draw
            )
        )
    found += [Dimension(f"fit/{key}", "fit", key, draw) for key, draw in space.fit.items()]
    return [*found, Dimension("model", "model", "id", space.models)]


def is_constant(draw: Draw) -> bool:
    """Whether there is nothing to suggest."""
    return isinstance(draw, Choices) and len(draw.values) == 1


def described(draw: Draw) -> dict[str, object]:
    """What a sampler is told of one."""
    if isinstance(draw, Choices):
        return {"kind": "choice", "count": len(draw.values)}
    low, high = (
        (1 - draw.high, 1 - draw.low)
        if draw.distribution == "log_near_one"
        else (draw.low, draw.high)
    )
    kind = "whole" if draw.whole else "real"
    return {"kind": kind, "low": low, "high": high, "log": draw.distribution != "linear"}


def value_at(draw: Draw, number: Any) -> object:
    """What a number that a sampler suggests stands for."""
    if isinstance(draw, Choices):
        return draw.values[number]
    return _within(draw, 1 - number if draw.distribution == "log_near_one" else number)


def _within(draw: Range, value: float) -> float:
    """A subtraction may round to just beyond a bound."""
    return min(max(value, draw.low), draw.high)


def number_at(draw: Draw, value: Any) -> Any:
    """The number that stands for a value, the other way round; None where it cannot be drawn.

    >>> (number_at(Choices((8, 16)), 16), number_at(Range(0.5, 0.99, "log_near_one"), 0.75),
    ...  number_at(Choices((8,)), 9))
    (1, 0.25, None)
    """
    if isinstance(draw, Choices):
        return draw.values.index(value) if value in draw.values else None
    if (
        not isinstance(value, (int, float))
        or not draw.low <= value <= draw.high
        or (draw.whole and value % 1)
    ):
        return None
    return 1 - value if draw.distribution == "log_near_one" else value
