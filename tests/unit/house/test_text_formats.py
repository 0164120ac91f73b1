"""Formats of numbers and dates in texts: the same ones in the backend and the exported recipe."""

from __future__ import annotations

import re

import pytest

from cerebro_db.export.recipe import text_formats as exported
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.kinds.registry import read_feature
from cerebro_plpy.preprocessing.values.families import MOMENTS, TEXT_NUMBERS, TEXT_POINTS
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.preprocessing.values.text_formats import (
    MOMENT_FORMATS,
    NUMBER_FORMATS,
    ZONED_PATTERN,
    moment_pattern,
)


@pytest.mark.parametrize("family", NUMBER_FORMATS)
def test_numbers_have_the_patterns_of_the_exported_recipe(family: str) -> None:
    assert exported.is_text_family(family)
    assert NUMBER_FORMATS[family].pattern == exported.number_pattern(family)


@pytest.mark.parametrize("family", MOMENT_FORMATS)
def test_dates_have_the_patterns_of_the_exported_recipe(family: str) -> None:
    order = family.removeprefix(exported.PREFIX).removesuffix(" HH:MM")
    assert moment_pattern(MOMENT_FORMATS[family].order) == exported.moment_pattern(order)
    assert exported.zoned_pattern() == ZONED_PATTERN


def test_the_example_of_a_format_is_in_it_and_in_no_other_with_a_unit() -> None:
    for family, number in NUMBER_FORMATS.items():
        matching = [
            other.unit
            for other in NUMBER_FORMATS.values()
            if other.mark == number.mark and re.match(other.pattern, number.example)
        ]
        assert family == f"text as {number.example}" and number.unit in matching
        assert matching == [number.unit] or not number.unit


def test_a_feature_of_each_format_is_stored_and_read() -> None:
    scale = Scale(1.0, 2.0)
    for family in TEXT_NUMBERS:
        number = Number("price", family, scale, missing=True)
        assert read_feature(number.to_json()) == number
    for family in TEXT_POINTS:
        moment = Moment("day", family, dict.fromkeys(MOMENTS[family], scale), missing=True)
        assert read_feature(moment.to_json()) == moment
