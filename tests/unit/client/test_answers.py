"""Answers without the database are those that a trainer tells, of any outputs of a network."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from cerebro_db.export.recipe.rows import INTEGERS, RawRows
from cerebro_trainer.commands.prediction_columns import PredictionFormat

CLASSES = ("a", "b", "c")
TYPES = ("real", "numeric", *INTEGERS)
OUTPUTS = st.floats(width=32)


def told(text: str) -> list[str | None]:
    """The elements of an array in the text of the server, none of which has to be quoted."""
    return [None if each == "NULL" else each for each in text[1:-1].split(",")]


@given(
    arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(1)), elements=OUTPUTS),
    st.sampled_from(TYPES),
)
def test_numbers_are_rounded_and_bounded_alike(
    outputs: NDArray[np.float32], target_type: str
) -> None:
    reach = INTEGERS.get(target_type)
    whole = None if reach is None else (-reach, reach - 1)
    rows = RawRows({"task": "regression", "target_type": target_type, "margin": 0.0})
    found = rows.answers(outputs)
    prediction, number = map(told, PredictionFormat(None, whole).format_columns(outputs))
    assert found.prediction == [each and (int if reach else float)(each) for each in prediction]
    assert found.lower == found.upper == [each and float(each) for each in number]


@given(
    arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(len(CLASSES))), elements=OUTPUTS)
)
def test_the_likeliest_class_is_the_same_and_unknown_where_an_output_is_no_number(
    outputs: NDArray[np.float32],
) -> None:
    found = RawRows({"task": "classification", "classes": CLASSES}).answers(outputs)
    prediction, probability, every = PredictionFormat(CLASSES, None).format_columns(outputs)
    assert found.prediction == [each and each.strip('"') for each in told(prediction)]
    assert found.probability == [each and float(each) for each in told(probability)]
    elements = json.loads("[" + every[1:-1].replace("NULL", "null") + "]")
    assert found.probabilities == [each and json.loads(each) for each in elements]


def test_a_column_that_lacks_is_named() -> None:
    scale = {"center": 0.0, "width": 1.0, "edges": []}
    feature = {"kind": "number", "column": "x", "family": "real", "scale": scale, "missing": True}
    rows = RawRows({"features": [feature]})
    assert rows.inputs({"x": [2.0, None], "other": []})["numbers"].tolist() == [
        [2.0, 0.0],
        [0.0, 1.0],
    ]
    with pytest.raises(KeyError, match="x"):
        rows.inputs({"other": [1]})
