"""What a trainer tells of a block of rows: array literals, read back here as PostgreSQL reads
them.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.commands.prediction_columns import PredictionFormat
from cerebro_trainer.errors import ConfigError, RequestError

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
ELEMENT = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^",{}]+))(?:,|$)', re.DOTALL)


def elements(literal: str) -> list[str | None]:
    """The elements of an array literal of one dimension."""
    body, found, place = literal[1:-1], [], 0
    assert literal[0] + literal[-1] == "{}"
    while place < len(body):
        match = ELEMENT.match(body, place)
        assert match, body[place:]
        plain = match[2]
        found.append(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL) if plain is None else plain)
        found[-1] = None if plain == "NULL" else found[-1]
        place = match.end()
    return found


@given(st.lists(TEXTS, min_size=2, max_size=5, unique=True), st.data())
def test_of_each_row_the_likeliest_class_and_all_probabilities(
    labels: list[str], data: st.DataObject
) -> None:
    rows = data.draw(
        st.lists(
            st.lists(st.floats(0, 1, width=32), min_size=len(labels), max_size=len(labels)),
            min_size=1,
            max_size=4,
        )
    )
    columns = PredictionFormat(tuple(labels), None).format_columns(np.array(rows, np.float32))
    predictions, probabilities, all_of_them = map(elements, columns)
    for row, prediction, probability, told in zip(
        rows, predictions, probabilities, all_of_them, strict=True
    ):
        assert prediction == labels[row.index(max(row))] and float(str(probability)) == max(row)
        assert json.loads(str(told)) == dict(zip(labels, row, strict=True))


@given(st.lists(st.floats(width=32), min_size=1))
def test_a_number_has_the_digits_that_tell_it_from_others(numbers: list[float]) -> None:
    predictions, unrounded = map(
        elements,
        PredictionFormat(None, None).format_columns(np.array(numbers, np.float32)[:, np.newaxis]),
    )
    assert predictions == unrounded
    for number, told in zip(numbers, predictions, strict=True):
        assert (told is None) == (not np.isfinite(number)) and (
            told is None or np.float32(told) == np.float32(number)
        )


@given(st.lists(st.floats(width=32), min_size=1), st.sampled_from([15, 31, 63]))
def test_a_whole_number_is_one_of_its_type(numbers: list[float], bits: int) -> None:
    reach = 1 << bits
    columns = PredictionFormat(None, (-reach, reach - 1)).format_columns(
        np.array(numbers, np.float32)[:, np.newaxis]
    )
    for number, told in zip(numbers, elements(next(columns)), strict=True):
        if told is None:
            assert not np.isfinite(number)
        else:
            assert int(told) == min(max(round(float(np.float32(number))), -reach), reach - 1)


def test_rows_that_are_no_numbers_have_no_class() -> None:
    told = PredictionFormat(("a", "b"), None).format_columns(
        np.array([[np.nan, 1.0], [np.inf, 0.0], [0.25, 0.75]], np.float32)
    )
    assert [elements(column)[:2] for column in told] == [[None, None]] * 3


def test_another_network_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 units; expected 3"):
        PredictionFormat(("a", "b", "c"), None).format_columns(np.zeros((1, 2), np.float32))


@pytest.mark.parametrize(
    "header",
    [{"labels": []}, {"labels": [1]}, {"labels": "a"}, {"whole": [1]}, {"whole": ["a", 1]}],
)
def test_requests_that_make_no_sense_are_refused(header: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        PredictionFormat.from_header(header)
