"""Targets whose texts are numbers: the expression of a view that predicts them as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cerebro_plpy.preprocessing.learning.text_recognition import (
    CODE_LENGTH,
    FEWEST_NUMBERS,
    MOST_OTHERS,
    write_cast,
)
from cerebro_plpy.preprocessing.rows.class_counts import ClassCounts
from cerebro_plpy.preprocessing.values.column_hints import number_expression
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.text_formats import EMPTY, NUMBER_FORMATS, NumberFormat
from cerebro_plpy.preprocessing.values.text_shapes import LEADING_ZERO


def write_number(column: RawColumn, counts: ClassCounts) -> str:
    """Return an expression of the number that a text is; NULL for texts that are not numbers."""
    rows = _filled_values(counts)
    # The first format is the plain one, which is taken if others do not fit better.
    best = max(NUMBER_FORMATS.values(), key=lambda number: _count_rows(rows, number))
    is_plain = not best.unit and not any("," in value for value in rows)
    if is_plain or _count_rows(rows, best) < sum(rows.values()):
        return number_expression(column)
    return write_cast(column.name, best)


def looks_like_numbers(counts: ClassCounts) -> bool:
    """Return whether nearly all rows have a text that is a number, and none is a code."""
    rows = _filled_values(counts)
    if len(rows) < FEWEST_NUMBERS or any(re.match(LEADING_ZERO, value) for value in rows):
        return False
    lengths = {len(value) for value in rows}
    if len(lengths) == 1 and min(lengths) >= CODE_LENGTH and all(map(str.isdigit, rows)):
        return False
    most = max(_count_rows(rows, number) for number in NUMBER_FORMATS.values())
    return most >= (1 - MOST_OTHERS) * sum(rows.values())


def _filled_values(counts: ClassCounts) -> dict[str, int]:
    """Return the values that are not blank, with their rows."""
    return {
        count.value: count.rows
        for count in counts.counts
        if count.value is not None and not re.match(EMPTY, count.value)
    }


def _count_rows(rows: Mapping[str, int], number: NumberFormat) -> int:
    return sum(count for value, count in rows.items() if re.match(number.pattern, value))
