"""With costs, a model predicts the class with the smallest expected cost, whoever predicts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cerebro_db.export.recipe.class_choice import choose_classes
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.operations.cost_matrix import parse_costs
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.scoring.calibration import NO_CALIBRATION, Calibration
from cerebro_plpy.preprocessing.scoring.class_costs import (
    MAX_COST,
    Costs,
    average_cost,
    find_cost,
    find_threshold,
)
from cerebro_plpy.preprocessing.scoring.fit_calibration import fit_calibration
from cerebro_plpy.preprocessing.scoring.metrics import accuracy
from cerebro_plpy.preprocessing.scoring.scored_rows import NO_ROWS, ScoredRow, ScoredRows
from cerebro_trainer.data import calibration as trainer_calibration
from cerebro_trainer.errors import RequestError

NAMES = "abcde"
COSTS = st.one_of(st.integers(0, 20).map(float), st.floats(0, 1e6))


@st.composite
def cost_matrices(draw: st.DrawFn, sizes: st.SearchStrategy[int]) -> tuple[str, Costs]:
    """Draw classes, and costs of some of their pairs; no mistake is cheaper than none."""
    classes = NAMES[: draw(sizes)]
    costs = {}
    for actual in draw(st.sets(st.sampled_from(classes), min_size=1)):
        named = draw(st.dictionaries(st.sampled_from(classes), COSTS))
        others = [named.get(name, 1.0) for name in classes if name != actual]
        named[actual] = min([named.get(actual, 0.0), *others])
        costs[actual] = named
    return classes, costs


@st.composite
def probabilities(draw: st.DrawFn, size: int) -> list[float]:
    weights = draw(st.lists(st.floats(0, 1), min_size=size, max_size=size).filter(any))
    assume(math.isfinite(1 / sum(weights)))
    return [weight / sum(weights) for weight in weights]


def expect_cost(costs: Costs, shares: Sequence[float], classes: str, predicted: str) -> float:
    parts = (
        share * find_cost(costs, actual, predicted)
        for actual, share in zip(classes, shares, strict=True)
    )
    return math.fsum(parts)


@given(st.data(), cost_matrices(st.integers(2, 5)), st.booleans())
def test_the_predicted_class_has_the_smallest_expected_cost(
    data: st.DataObject, drawn: tuple[str, Costs], has_threshold: bool
) -> None:
    """In the backend, in the trainer and in an exported model, with a threshold and without."""
    classes, costs = drawn
    threshold = find_threshold(costs, classes) if has_threshold else None
    calibration = Calibration(threshold=threshold, costs=costs)
    shares = data.draw(probabilities(len(classes)))
    expected = {name: expect_cost(costs, shares, classes, name) for name in classes}
    largest = max(find_cost(costs, *pair) for pair in ((a, b) for a in classes for b in classes))
    row = ScoredRow("a", dict(zip(classes, shares, strict=True)))
    (in_backend,) = calibration.correct(ScoredRows.collect([row])).list_predictions()
    header = {"calibration": json.loads(json.dumps(calibration.describe(classes)))}
    in_trainer = trainer_calibration.Calibration.from_header(header)
    array = np.array([shares])
    description = {"classes": list(classes), **json.loads(calibration.to_json())}
    for prediction in (
        in_backend,
        classes[in_trainer.choose_classes(array)[0]],
        classes[choose_classes(description, array)[0]],
    ):
        assert expected[prediction] <= min(expected.values()) + 1e-12 * (1 + largest)


@given(st.data(), st.integers(2, 5))
def test_usual_costs_predict_the_most_probable_class(data: st.DataObject, size: int) -> None:
    classes = NAMES[:size]
    costs = {name: {other: float(name != other) for other in classes} for name in classes}
    shares = data.draw(st.lists(probabilities(size), min_size=1, max_size=5))
    rows = ScoredRows.collect(
        ScoredRow("a", dict(zip(classes, row, strict=True))) for row in shares
    )
    decided = Calibration(costs=costs).correct(rows)
    assert list(decided.list_predictions()) == list(rows.list_predictions())
    assert average_cost(costs, decided) == pytest.approx(1 - accuracy(rows))


@given(cost_matrices(st.just(2)))
def test_a_dearer_omission_lowers_the_threshold(drawn: tuple[str, Costs]) -> None:
    classes, costs = drawn
    threshold = find_threshold(costs, classes)
    if threshold is None:
        return
    assert 0 <= threshold <= 1
    dearer = {**costs, "b": {**costs.get("b", {}), "a": find_cost(costs, "b", "a") + 1}}
    lower = find_threshold(dearer, classes)
    assert lower is not None and lower <= threshold


@given(cost_matrices(st.integers(2, 5)))
def test_stored_costs_are_read_to_the_bit(drawn: tuple[str, Costs]) -> None:
    classes, costs = drawn
    calibration = Calibration(threshold=find_threshold(costs, classes), costs=costs)
    assert Calibration.from_json(calibration.to_json()) == calibration


def test_calibrations_without_costs_are_read_and_written_as_before() -> None:
    assert Calibration.from_json("{}") == NO_CALIBRATION
    assert NO_CALIBRATION.to_json() == "{}"
    stored = {"temperature": 2.0, "threshold": 0.25}
    calibration = Calibration.from_json(json.dumps(stored))
    assert calibration == Calibration(temperature=2.0, threshold=0.25)
    assert json.loads(calibration.to_json()) == stored


def test_costs_replace_the_threshold_of_a_metric() -> None:
    """The temperature is the same; rows that were not predicted leave the costs alone."""
    random = np.random.default_rng(1)
    shares = random.beta(1, 6, size=1000).tolist()
    rows = ScoredRows.collect(
        ScoredRow("ab"[random.random() < p], {"a": 1 - p, "b": p}) for p in shares
    )
    costs = {"b": {"a": 9.0}}
    calibration = fit_calibration(CLASSIFICATION, "f1", rows, costs)
    assert calibration.threshold == 0.1
    assert calibration.temperature == fit_calibration(CLASSIFICATION, "f1", rows).temperature
    assert average_cost(costs, calibration.correct(rows)) < average_cost(costs, rows)
    assert fit_calibration(CLASSIFICATION, "f1", NO_ROWS, costs) == Calibration(costs=costs)


DAMAGED = (3, {"a": 3}, {"a": {"b": -1}}, {"a": {"b": "x"}}, {"a": {"b": math.inf}})


@pytest.mark.parametrize("damage", DAMAGED, ids=str)
def test_damaged_costs_are_refused(damage: object) -> None:
    with pytest.raises(ValueError, match="costs"):
        Calibration.from_json(json.dumps({"costs": damage}))


@pytest.mark.parametrize(
    "named", [{"actual": -1, "predicted": 0, "cost": 1}, {"actual": 0, "predicted": 1, "cost": -1}]
)
def test_a_trainer_refuses_damaged_costs(named: dict[str, float]) -> None:
    header = {"calibration": {"temperature": 1.0, "costs": [named]}}
    with pytest.raises(RequestError):
        trainer_calibration.Calibration.from_header(header)


def test_a_trainer_refuses_costs_of_other_classes() -> None:
    named = [{"actual": 0, "predicted": 2, "cost": 5.0}]
    header = {"calibration": {"temperature": 1.0, "costs": named}}
    calibration = trainer_calibration.Calibration.from_header(header)
    with pytest.raises(RequestError):
        calibration.choose_classes(np.array([[0.5, 0.5]]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"costs is '\[1\]'; expected a JSON object"),
        ('{"a": 1}', "costs has 1 for class 'a'; expected an object"),
        ('{"a": {"b": -0.5}}', "costs has -0.5 for 'b' predicted for class 'a'; expected a number"),
        ('{"a": {"b": "1"}}', "costs has \"1\" for 'b' predicted for class 'a'"),
        ('{"a": {"b": true}}', "costs has true for 'b' predicted for class 'a'"),
        ('{"a": {"b": 1' + "0" * 400 + "}}", "expected a number from 0 to 1e[+]100"),
    ],
)
def test_malformed_costs_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        parse_costs("train", text)


def test_costs_are_parsed() -> None:
    assert parse_costs("train", None) == parse_costs("train", "{}") == {}
    assert parse_costs("train", f'{{"a": {{"b": {MAX_COST}}}}}') == {"a": {"b": MAX_COST}}
