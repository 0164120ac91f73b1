"""The colours of curves are told from the ground of both themes, and from each other."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

STYLE = Path(__file__).parents[3] / "cerebro_db" / "dashboard" / "static" / "style.css"
LEAST_CONTRAST = 3.0  # of graphics, by WCAG 2.1
LEAST_DIFFERENCE = 0.2  # sum over the channels; half of the curves are dashed as well
TEXT = STYLE.read_text()


def read_pair(name: str) -> tuple[str, str]:
    """The colours of a name in the light and in the dark theme."""
    match = re.search(rf"--{name}: (?:light-dark\((#\w+), (#\w+)\)|(#\w+));", TEXT)
    assert match
    light, dark, both = match.groups()
    return (both, both) if both else (light, dark)


def read_channels(colour: str) -> list[float]:
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    return [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]


def measure_luminance(colour: str) -> float:
    linear = [
        channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in read_channels(colour)
    ]
    return sum(share * value for share, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def measure_contrast(one: str, other: str) -> float:
    dark, light = sorted(map(measure_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


CURVES = [f"curve-{number}" for number in range(1, 9)]


@pytest.mark.parametrize("name", [*CURVES, "best", "mark", "train", "bad", "faint"])
def test_each_colour_is_seen_in_both_themes(name: str) -> None:
    for colour, sheet in zip(read_pair(name), read_pair("sheet"), strict=True):
        assert measure_contrast(colour, sheet) >= LEAST_CONTRAST


def test_curves_differ() -> None:
    colours = [read_channels(read_pair(name)[0]) for name in CURVES]
    for one, other in combinations(colours, 2):
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) > LEAST_DIFFERENCE
