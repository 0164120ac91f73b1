"""What is reported of a row's class probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cerebro_trainer.commands.predictions import ClassSelection, rank_classes, tabulate
from cerebro_trainer.errors import ConfigError, RequestError

ALL = ClassSelection(kind="prob")
tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(2, 5)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)


@given(tables)
def test_ranks_order_values_and_then_classes(values: np.ndarray) -> None:
    for row, rank in zip(values, rank_classes(values), strict=True):
        by_rank = sorted(range(len(row)), key=lambda label: (-row[label], label))
        assert [int(rank[label]) for label in by_rank] == list(range(1, len(row) + 1))


@given(tables, st.integers(1, 6))
def test_top_is_a_part_of_all_and_response_is_the_first_of_it(values: np.ndarray, n: int) -> None:
    classes = values.shape[1]
    every = tabulate([values], [classes], ALL)
    top = tabulate([values], [classes], ClassSelection(kind="top", n=n))
    best = tabulate([values], [classes], ClassSelection(kind="response"))
    assert len(every.row) == values.size
    np.testing.assert_array_equal(top.label, every.label[every.rank <= n])
    np.testing.assert_array_equal(best.label, values.argmax(axis=1))


@given(tables)
def test_threshold_is_exclusive(values: np.ndarray) -> None:
    found = tabulate([values], [values.shape[1]], ClassSelection(kind="threshold", threshold=0.5))
    assert len(found.row) == (values > 0.5).sum()
    assert (found.value > 0.5).all()


def test_several_outputs_stand_side_by_side() -> None:
    found = tabulate([np.array([[0.2, 0.8]]), np.array([[7.0]])], [2, 0], ALL)
    assert found.to_header() == {
        "row": "{1,1,1}",
        "output": "{0,0,1}",
        "class": "{1,0,0}",
        "value": "{0.8,0.2,7.0}",
        "rank": "{1,2,1}",
    }


def test_one_unit_for_two_classes_is_the_second() -> None:
    assert tabulate([np.array([[0.75]])], [2], ALL).to_header()["value"] == "{0.75,0.25}"


def test_units_beyond_the_classes_only_padded_the_targets() -> None:
    assert tabulate([np.array([[0.25, 0.25, 0.5]])], [2], ALL).to_header()["value"] == "{0.25,0.25}"


@pytest.mark.parametrize(
    ("outputs", "classes"), [([np.ones((1, 3))], [4]), ([np.ones((1, 3))], [3, 3])]
)
def test_outputs_that_do_not_fit_the_classes_are_refused(
    outputs: list[np.ndarray], classes: list[int]
) -> None:
    with pytest.raises(ConfigError):
        tabulate(outputs, classes, ALL)


@pytest.mark.parametrize(
    "want",
    [
        {},
        {"kind": "most"},
        {"kind": "top"},
        {"kind": "top", "n": 0},
        {"kind": "threshold", "threshold": "0.5"},
    ],
)
def test_wants_are_checked(want: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        ClassSelection.from_header({"want": want})
