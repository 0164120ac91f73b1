"""Axes of parallel coordinates, computed apart from the drawing so that tests can check them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeGuard

from cerebro_db.display.boards import name_metric
from cerebro_db.records import Parameter, Standing

MIN_LOG_RATIO = 100
"""Smallest ratio of the largest to the smallest number for which an axis is logarithmic."""
MISSING = -0.12
"""Position of configs that lack the parameter."""
MAX_VALUE_TICKS = 6
"""Largest number of distinct numbers of which each has a tick."""


class Tick(NamedTuple):
    """A tick of an axis."""

    position: float  # from 0 to 1, or MISSING
    text: str


class Axis(NamedTuple):
    """An axis of parallel coordinates."""

    name: str
    positions: Mapping[int, float]  # by mst_key: from 0 to 1, or MISSING
    ticks: tuple[Tick, ...]


Placement: TypeAlias = tuple[dict[int, float], tuple[Tick, ...]]
"""The positions of values, and the ticks."""


def make_axis(name: str, values: Mapping[int, object]) -> Axis:
    """Return the axis for the values of configs, by mst_key.

    Numbers are placed in proportion; if they span MIN_LOG_RATIO, in proportion to their logarithms.
    Other values are placed at equal distances, in the order of their text.

    >>> make_axis("lr", {1: 0.1, 2: 0.001, 3: 0.01, 4: None}).positions
    {1: 1.0, 2: 0.0, 3: 0.5, 4: -0.12}
    >>> make_axis("optimizer", {1: "SGD", 2: "Adam"}).ticks
    (Tick(position=0.0, text='Adam'), Tick(position=1.0, text='SGD'))
    """
    present = {key: value for key, value in values.items() if not _is_missing(value)}
    numbers = {key: float(value) for key, value in present.items() if _is_number(value)}
    if len(numbers) == len(present):
        positions, ticks = _place_numbers(numbers)
    else:
        positions, ticks = _place_texts(present)
    if len(present) < len(values):
        ticks = (Tick(MISSING, "none"), *ticks)
    return Axis(name, {key: positions.get(key, MISSING) for key in values}, ticks)


def make_axes(standings: Sequence[Standing], parameters: Iterable[Parameter]) -> list[Axis]:
    """Return an axis for each parameter in which configs differ, and last that of the metric.

    The axis of the template is the first. If configs do not differ, each parameter has an axis.
    """
    values_by_name: dict[str, dict[int, object]] = {}
    for parameter in parameters:
        values_by_name.setdefault(parameter.name, {})[parameter.mst_key] = parameter.value
    columns: dict[str, dict[int, object]] = {}
    if any(standing.template for standing in standings):
        columns["template"] = {standing.mst_key: standing.template for standing in standings}
    for name, values in sorted(values_by_name.items()):
        columns[name] = {standing.mst_key: values.get(standing.mst_key) for standing in standings}
    differing = {
        name: values for name, values in columns.items() if len(set(map(repr, values.values()))) > 1
    }
    axes = [make_axis(name, values) for name, values in (differing or columns).items()]
    scores = {standing.mst_key: standing.value for standing in standings}
    return [*axes, make_axis(name_metric(standings), scores)]


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _place_numbers(values: Mapping[int, float]) -> Placement:
    low = min(values.values(), default=0.0)
    high = max(values.values(), default=0.0)
    is_logarithmic = low > 0 and high / low >= MIN_LOG_RATIO
    transform = math.log if is_logarithmic else float
    start = transform(low)
    end = transform(high)

    def place(value: float) -> float:
        if start == end:
            return 0.5
        # Halves do not overflow.
        return (transform(value) / 2 - start / 2) / (end / 2 - start / 2)

    marks = sorted(set(values.values()))
    digits = 4
    if len(marks) > MAX_VALUE_TICKS:
        digits = 3
        if is_logarithmic:
            marks = _list_powers(low, high)
        else:
            marks = [low * (1 - step / 4) + high * (step / 4) for step in range(5)]
    ticks = tuple(Tick(place(mark), f"{mark:.{digits}g}") for mark in marks)
    return {key: place(value) for key, value in values.items()}, ticks


def _list_powers(low: float, high: float) -> list[float]:
    """Return the powers of ten between two numbers, and these numbers.

    >>> _list_powers(0.02, 3)
    [0.02, 0.1, 1.0, 3]
    """
    exponents = range(math.ceil(math.log10(low)), math.ceil(math.log10(high)))
    powers = [float(f"1e{exponent}") for exponent in exponents]
    return [low, *(power for power in powers if low < power < high), high]


def _place_texts(values: Mapping[int, object]) -> Placement:
    texts = {key: str(value) for key, value in values.items()}
    names = sorted(set(texts.values()))
    if len(names) > 1:
        ticks = tuple(Tick(index / (len(names) - 1), name) for index, name in enumerate(names))
    else:
        ticks = tuple(Tick(0.5, name) for name in names)
    positions = {tick.text: tick.position for tick in ticks}
    return {key: positions[text] for key, text in texts.items()}, ticks
