"""Where values stand on the axes of parallel coordinates: pure, so that what is drawn can be
checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from cerebro_db.records import Parameter, Standing

DECADES = 100
"""So much between the smallest and the largest number, and the axis is logarithmic."""
MISSING = -0.12
"""Where configs stand that lack the parameter."""
FEW = 6


class Tick(NamedTuple):
    """A place of an axis, from 0 to 1, and what is written there."""

    place: float
    text: str


class Axis(NamedTuple):
    """The places of configs from 0 to 1, or MISSING, and what is written beside them."""

    name: str
    places: Mapping[int, float]
    ticks: tuple[Tick, ...]


def axis(name: str, values: Mapping[int, object]) -> Axis:
    """Numbers in proportion, or in that of their logarithms; anything else evenly, in the order of
    its text.

    >>> axis("lr", {1: 0.1, 2: 0.001, 3: 0.01, 4: None}).places
    {1: 1.0, 2: 0.0, 3: 0.5, 4: -0.12}
    >>> axis("optimizer", {1: "SGD", 2: "Adam"}).ticks
    (Tick(place=0.0, text='Adam'), Tick(place=1.0, text='SGD'))
    """
    known = {key: value for key, value in values.items() if not _missing(value)}
    numbers = {key: float(value) for key, value in known.items() if _number(value)}
    places, ticks = _of_numbers(numbers) if len(numbers) == len(known) else _of_texts(known)
    absent = (Tick(MISSING, "none"),) if len(known) < len(values) else ()
    return Axis(name, {key: places.get(key, MISSING) for key in values}, (*absent, *ticks))


def coordinates(standings: Sequence[Standing], parameters: Iterable[Parameter]) -> list[Axis]:
    """An axis for each parameter that not all configs share, the template first, and the metric's
    behind them.

    Where all configs are alike there is one for each parameter.
    """
    found: dict[str, dict[int, object]] = {}
    for one in parameters:
        found.setdefault(one.name, {})[one.mst_key] = one.value
    keys = [standing.mst_key for standing in standings]
    full = {name: {key: its.get(key) for key in keys} for name, its in sorted(found.items())}
    if any(standing.template for standing in standings):
        full = {"template": {standing.mst_key: standing.template for standing in standings}, **full}
    differing = {name: its for name, its in full.items() if len(set(map(repr, its.values()))) > 1}
    told = f"{standings[0].dataset} {standings[0].metric}" if standings else "metric"
    metric = axis(told, {standing.mst_key: standing.value for standing in standings})
    return [*(axis(name, its) for name, its in (differing or full).items()), metric]


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_numbers(values: Mapping[int, float]) -> tuple[dict[int, float], tuple[Tick, ...]]:
    low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
    logarithmic = low > 0 and high / low >= DECADES
    start, end = (math.log(low), math.log(high)) if logarithmic else (low, high)

    def place(value: float) -> float:
        at = math.log(value) if logarithmic else value
        return (
            0.5 if start == end else (at / 2 - start / 2) / (end / 2 - start / 2)
        )  # halves: none overflows

    distinct = sorted(set(values.values()))
    if len(distinct) <= FEW:
        return {key: place(value) for key, value in values.items()}, tuple(
            Tick(place(v), f"{v:.4g}") for v in distinct
        )
    marks = (
        _decades(low, high)
        if logarithmic
        else [low * (1 - step / 4) + high * (step / 4) for step in range(5)]
    )
    return {key: place(value) for key, value in values.items()}, tuple(
        Tick(place(v), f"{v:.3g}") for v in marks
    )


def _decades(low: float, high: float) -> list[float]:
    """The powers of ten between two numbers, and these.

    >>> _decades(0.02, 3)
    [0.02, 0.1, 1.0, 3]
    """
    powers = (
        float(f"1e{power}")
        for power in range(math.ceil(math.log10(low)), math.ceil(math.log10(high)))
    )
    return [low, *(power for power in powers if low < power < high), high]


def _of_texts(values: Mapping[int, object]) -> tuple[dict[int, float], tuple[Tick, ...]]:
    names = sorted({str(value) for value in values.values()})
    places = {
        name: number / (len(names) - 1) if len(names) > 1 else 0.5
        for number, name in enumerate(names)
    }
    return {key: places[str(value)] for key, value in values.items()}, tuple(
        Tick(places[n], n) for n in names
    )
