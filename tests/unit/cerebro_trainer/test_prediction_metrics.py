"""Both ends have the metrics that models are compared by: of the same predictions they say the
same.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.scoring.metrics import SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows
from cerebro_trainer.commands import permutation_importance
from cerebro_trainer.commands.permutation_importance import PermutationRequest
from cerebro_trainer.data.prediction_metrics import LOSSES

LARGER = ("accuracy", "auc", "r2")
SHARES = st.integers(0, 8).map(lambda n: n / 8)


def score(name: str, loss: float) -> float:
    """The metric that a loss is of."""
    return 1 - loss if name in LARGER else loss


@given(st.lists(st.tuples(st.integers(0, 2), SHARES, SHARES, SHARES), min_size=1), st.data())
def test_classes_are_scored_alike(
    rows: list[tuple[int, float, float, float]], data: st.DataObject
) -> None:
    told = ScoredRows.collect(
        ScoredRow(str(label), {str(n): p for n, p in enumerate(shares)}) for label, *shares in rows
    )
    outputs, target = (
        np.array([shares for _, *shares in rows]),
        np.array([float(label) for label, *_ in rows]),
    )
    for name in ("accuracy", "log_loss", "auc"):
        found, wanted = score(name, LOSSES[name](outputs, target)), SCORES[name](told)
        assert found == pytest.approx(wanted, nan_ok=True), name


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1))
def test_numbers_are_scored_alike(rows: list[tuple[int, int]]) -> None:
    told = ScoredRows.collect(ScoredRow(str(label), {}, float(number)) for label, number in rows)
    outputs, target = (
        np.array([[float(n)] for _, n in rows]),
        np.array([float(label) for label, _ in rows]),
    )
    for name in ("rmse", "mae", "r2"):
        found, wanted = score(name, LOSSES[name](outputs, target)), SCORES[name](told)
        assert found == pytest.approx(wanted, nan_ok=True), name


def test_a_class_that_is_not_known_counts_as_wrong() -> None:
    outputs, target = np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0.0, -1.0])
    told = ScoredRows.collect(ScoredRow(label, {"0": 0.9, "1": 0.1}) for label in "0c")
    for name in ("accuracy", "log_loss"):
        assert score(name, LOSSES[name](outputs, target)) == pytest.approx(SCORES[name](told))


def test_what_belongs_to_a_column_is_shuffled_together_and_nothing_else_is() -> None:
    numbers, codes = np.arange(40.0).reshape(10, 4), np.arange(20).reshape(10, 2)
    request = PermutationRequest(
        metric="mae",
        columns=([[0, 3], [1]], [[], []]),
        classes=0,
        repeats=2,
        seed=3,
        seconds=math.inf,
    )
    seen: list[list[np.ndarray]] = []

    def predict(inputs: object) -> np.ndarray:
        seen.append([array.copy() for array in inputs])  # type: ignore[attr-defined]
        return inputs[0][:, :1]  # type: ignore[index,no-any-return]

    losses = [*request.compute_losses(predict, [numbers, codes], numbers[:, 0])]
    assert (
        losses[1] == [0.0, 0.0] and all(loss > 0 for loss in losses[0]) and len(set(losses[0])) == 2
    )
    _, one, other, *_ = seen
    for moved in (one, other):
        assert sorted(moved[0][:, 0]) == sorted(numbers[:, 0]) and list(moved[0][:, 0]) != list(
            numbers[:, 0]
        )
        assert (moved[0][:, 3] - moved[0][:, 0] == 3).all() and (
            moved[0][:, 0] == 2 * (moved[1][:, 1] - 1)
        ).all()
        assert (moved[0][:, 1:3] == numbers[:, 1:3]).all() and (moved[1][:, 0] == codes[:, 0]).all()
    assert math.isfinite(sum(map(sum, losses)))


def test_where_the_time_is_up_the_columns_before_have_what_they_have_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here each prediction takes a second, the first one that of the rows as they are."""
    numbers = np.arange(30.0).reshape(10, 3)
    columns = tuple([[place]] for place in range(3))

    def losses(seconds: float) -> list[list[float]]:
        now = [0.0]
        monkeypatch.setattr(
            permutation_importance, "time", SimpleNamespace(monotonic=lambda: now[0])
        )

        def predict(inputs: object) -> np.ndarray:
            now[0] += 1
            return inputs[0].sum(axis=1, keepdims=True)  # type: ignore[index,no-any-return]

        request = PermutationRequest("mae", columns, 0, repeats=2, seed=3, seconds=seconds)
        return [*request.compute_losses(predict, [numbers], numbers[:, 0])]

    whole = losses(math.inf)
    assert [len(each) for each in whole] == [2, 2, 2]
    for seconds in range(9):
        done = min(3, max(0, (seconds - 1) // 2))
        assert losses(seconds) == [*whole[:done], *[[]] * (3 - done)]
