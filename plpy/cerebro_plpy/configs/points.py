"""A search space as a sampler wants it described, and a point that it suggests as a configuration.

Choices travel as their numbers in the list, so that a sampler sees numbers only. A range whose values lie near one
travels as the distance from one, which is drawn by its logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.draws import Choices, Draw, Range
from cerebro_plpy.configs.grid import ConfigRow, made_row
from cerebro_plpy.configs.space import Space

Point = Mapping[str, Any]  # {"alternative": number, "values": {dimension: number}}


class Dimension(NamedTuple):
    """What is drawn for one key of the compile parameters, of the fit parameters, or for the model."""

    name: str
    part: str
    key: str
    draw: Draw


def describe(space: Space) -> list[list[dict[str, object]]]:
    """For each alternative its dimensions, but those with one value only."""
    return [
        [{"name": d.name, **_described(d.draw)} for d in _dimensions(space, number) if not _constant(d.draw)]
        for number in range(len(space.alternatives))
    ]


def config_row(space: Space, point: Point) -> ConfigRow:
    """The configuration that a suggested point stands for."""
    parts: dict[str, dict[str, object]] = {"compile": {}, "fit": {}, "model": {}}
    for dimension in _dimensions(space, point["alternative"]):
        number = 0 if _constant(dimension.draw) else point["values"][dimension.name]
        parts[dimension.part][dimension.key] = _value(dimension.draw, number)
    return made_row(parts["model"]["id"], parts["compile"], parts["fit"], space.functions)


def _dimensions(space: Space, number: int) -> list[Dimension]:
    """The dimensions of an alternative; one that is drawn alike in all of them has one name, and is learnt once."""
    found = []
    for key, draw in space.alternatives[number].items():
        shared = all(other.get(key) == draw for other in space.alternatives)
        found.append(Dimension(f"compile/{key}" if shared else f"compile/{number}/{key}", "compile", key, draw))
    found += [Dimension(f"fit/{key}", "fit", key, draw) for key, draw in space.fit.items()]
    return [*found, Dimension("model", "model", "id", space.models)]


def _constant(draw: Draw) -> bool:
    return isinstance(draw, Choices) and len(draw.values) == 1


def _described(draw: Draw) -> dict[str, object]:
    if isinstance(draw, Choices):
        return {"kind": "choice", "count": len(draw.values)}
    low, high = (1 - draw.high, 1 - draw.low) if draw.distribution == "log_near_one" else (draw.low, draw.high)
    kind = "whole" if draw.whole else "real"
    return {"kind": kind, "low": low, "high": high, "log": draw.distribution != "linear"}


def _value(draw: Draw, number: Any) -> object:
    if isinstance(draw, Choices):
        return draw.values[number]
    return _within(draw, 1 - number if draw.distribution == "log_near_one" else number)


def _within(draw: Range, value: float) -> float:
    """A subtraction may round to just beyond a bound."""
    return min(max(value, draw.low), draw.high)
