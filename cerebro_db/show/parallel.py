"""Configurations as lines over parallel axes: one for each parameter that is not alike in all, and one for the metric.

See Inselberg, "The plane with parallel coordinates", The Visual Computer 1 (1985).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DECADES = 2
"""An axis is logarithmic where positive numbers span at least so many powers of ten."""
TICKS = 5
CATEGORIES = 12
"""Of more categories, so many are named."""


@dataclass(frozen=True)
class Axis:
    """One axis, from 0 to 1: what is named at which places of it, and where each configuration crosses it."""

    name: str
    ticks: list[tuple[float, str]]
    places: dict[int, float]


def axes(params: Mapping[int, Mapping[str, Any]], values: Mapping[int, float | None], metric: str) -> list[Axis]:
    """The axes of the configurations, by `mst_key`; who lacks a parameter, or a finite value, does not cross its axis.

    >>> [(axis.name, axis.places) for axis in axes({1: {"lr": 0.1, "depth": 2}, 2: {"lr": 0.3, "depth": 2}},
    ...                                            {1: 0.5, 2: 1.0}, "accuracy")]
    [('lr', {1: 0.0, 2: 1.0}), ('accuracy', {1: 0.0, 2: 1.0})]
    """
    names = dict.fromkeys(name for one in params.values() for name in one)
    columns = {name: {key: one[name] for key, one in params.items() if name in one} for name in names}
    differing = {name: column for name, column in columns.items() if _differs(column, len(params))}
    finite = {key: value for key, value in values.items() if value is not None and math.isfinite(value)}
    return [*(_axis(name, column) for name, column in differing.items()), _numbers(metric, finite)]


def _differs(column: Mapping[int, Any], count: int) -> bool:
    return len(column) < count or len({json.dumps(value, sort_keys=True) for value in column.values()}) > 1


def _axis(name: str, column: Mapping[int, Any]) -> Axis:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in column.values()):
        return _numbers(name, column)
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in column.items()}
    order = sorted(set(texts.values()))
    place = {text: _share(number, 0, len(order) - 1) for number, text in enumerate(order)}
    step = math.ceil(len(order) / CATEGORIES)
    return Axis(
        name, [(place[text], text) for text in order[::step]], {key: place[text] for key, text in texts.items()}
    )


def _numbers(name: str, column: Mapping[int, float]) -> Axis:
    if not column:
        return Axis(name, [], {})
    low, high = min(column.values()), max(column.values())
    if low > 0 and math.log10(high / low) >= DECADES:
        ends = math.log10(low), math.log10(high)
        places = {key: _share(math.log10(value), *ends) for key, value in column.items()}
        return Axis(name, [(_share(math.log10(tick), *ends), f"{tick:.3g}") for tick in _powers(low, high)], places)
    places = {key: _share(value, low, high) for key, value in column.items()}
    ticks = sorted(set(column.values())) if len(set(column.values())) <= TICKS else _even(low, high)
    return Axis(name, [(_share(tick, low, high), f"{tick:.4g}") for tick in ticks], places)


def _share(value: float, low: float, high: float) -> float:
    return 0.5 if low == high else (value - low) / (high - low)


def _powers(low: float, high: float) -> Iterable[float]:
    """The ends, and the powers of ten between them that are not close to one."""
    between = (10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1))
    return [low, *(tick for tick in between if low * 1.5 < tick < high / 1.5), high]


def _even(low: float, high: float) -> Iterable[float]:
    return [low + (high - low) * number / (TICKS - 1) for number in range(TICKS)]
