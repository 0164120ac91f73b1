"""Rows by columns are the rows that they were collected from, and are combined like them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.scoring.ensemble_selection import add_rows
from cerebro_plpy.preprocessing.scoring.scored_rows import NO_ROWS, ScoredRow, ScoredRows

NAMES = ("a", "b", "c")
LABELS = st.sampled_from((*NAMES, "unknown"))
SHARES = st.floats(0, 1)
NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def classified_rows(draw: st.DrawFn) -> ScoredRow:
    """Draw a prediction of a class, which may be decided."""
    shares = {name: draw(SHARES) for name in NAMES}
    return ScoredRow(draw(LABELS), shares, prediction=draw(st.sampled_from((None, *NAMES))))


@st.composite
def predicted_numbers(draw: st.DrawFn) -> ScoredRow:
    return ScoredRow(repr(draw(NUMBERS)), {}, draw(NUMBERS))


ROWS = st.one_of(st.lists(classified_rows(), max_size=6), st.lists(predicted_numbers(), max_size=6))


def compare(found: list[ScoredRow], wanted: list[ScoredRow]) -> None:
    """Compare rows; the number of a class is not one."""
    assert [row._replace(number=0.0) for row in found] == [
        row._replace(number=0.0) for row in wanted
    ]
    numbers = [(row.number, other.number) for row, other in zip(found, wanted, strict=True)]
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in numbers)


@given(ROWS, st.slices(6))
def test_rows_come_back(rows: list[ScoredRow], part: slice) -> None:
    collected = ScoredRows.collect(rows)
    assert len(collected) == len(rows) and bool(collected) == bool(rows)
    compare([*collected], rows)
    compare([*collected[part]], rows[part])
    for place in (*range(len(rows)), -1)[: len(rows)]:
        compare([collected[place]], [rows[place]])
    with pytest.raises(IndexError):
        collected[len(rows)]


@given(st.lists(classified_rows(), max_size=6))
def test_columns_say_what_the_rows_do(rows: list[ScoredRow]) -> None:
    collected = ScoredRows.collect(rows)
    assert [*collected.list_label_probabilities()] == [
        row.classes.get(row.label, 0.0) for row in rows
    ]
    for row, prediction in zip(rows, collected.list_predictions(), strict=True):
        largest = max(row.classes.values())
        first = next(name for name, share in row.classes.items() if share == largest)
        assert prediction == (row.prediction or first)


@given(st.data(), st.integers(1, 4))
def test_sums_are_added_part_by_part(data: st.DataObject, parts: int) -> None:
    labels = data.draw(st.lists(LABELS, max_size=5))
    drawn = []
    for _ in range(parts):
        shares = [{name: data.draw(SHARES) for name in NAMES} for _ in labels]
        drawn.append((shares, data.draw(SHARES)))
    models = [
        (ScoredRows.collect(map(ScoredRow, labels, shares)), share) for shares, share in drawn
    ]
    added = add_rows(models)
    for place, row in enumerate(added):
        for name in NAMES:
            total = 0.0
            for shares, share in drawn:
                total += shares[place][name] * share
            assert row.classes[name] == total
    assert len(added) == len(labels)


def test_no_rows_are_false() -> None:
    assert not NO_ROWS and [*NO_ROWS] == []
