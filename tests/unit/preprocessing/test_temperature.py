"""A temperature keeps the predicted class, lowers the log loss, and is the same everywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.fit_calibration import fit_calibration
from cerebro_plpy.preprocessing.scoring.metrics import SCORES, log_loss
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows
from cerebro_plpy.preprocessing.scoring.temperature import (
    BOUNDS,
    NEUTRAL,
    apply_temperature,
    fit_temperature,
)
from cerebro_trainer.data import calibration as trainer_calibration
from cerebro_trainer.errors import RequestError

NAMES = "abc"
TEMPERATURES = st.floats(*BOUNDS)


@st.composite
def outputs(draw: st.DrawFn) -> list[float]:
    """Draw the outputs of a network for a row, in single precision; some are very sure."""
    weights = draw(
        st.lists(
            st.one_of(st.floats(0, 1, width=32), st.sampled_from([0.0, 1e-12, 0.5])),
            min_size=3,
            max_size=3,
        ).filter(any)
    )
    numbers = np.array(weights) / sum(weights)
    return [float(number) for number in numbers.astype(np.float32)]


def make_rows(probabilities: Sequence[Sequence[float]], labels: Sequence[str]) -> ScoredRows:
    return ScoredRows.collect(
        ScoredRow(label, dict(zip(NAMES, row, strict=False)))
        for row, label in zip(probabilities, labels, strict=True)
    )


@given(st.lists(outputs(), min_size=1, max_size=9), TEMPERATURES)
def test_backend_and_trainer_compute_the_same(
    probabilities: list[list[float]], temperature: float
) -> None:
    """The predicted class stays; equal probabilities stay equal, and they add up to 1."""
    array = np.array(probabilities, np.float32)
    corrected = trainer_calibration.Calibration(temperature).correct(array)
    rows = make_rows(probabilities, "a" * len(probabilities))
    for row, found in zip(rows, corrected, strict=True):
        heated = apply_temperature(row, temperature)
        assert list(heated.classes.values()) == pytest.approx(found.tolist(), rel=1e-12, abs=1e-300)
        predictions = {*ScoredRows.collect([heated, row]).list_predictions()}
        assert predictions == {NAMES[found.argmax()]}
        assert math.fsum(heated.classes.values()) == pytest.approx(1)


@given(st.lists(outputs(), min_size=1, max_size=9))
def test_the_neutral_temperature_changes_no_bit(probabilities: list[list[float]]) -> None:
    array = np.array(probabilities, np.float32)
    neutral = trainer_calibration.NO_CALIBRATION
    assert neutral.correct(array) is array
    rows = make_rows(probabilities, "a" * len(probabilities))
    assert Calibration().correct(rows) is rows


def test_rows_that_are_not_finite_stay() -> None:
    array = np.array([[math.nan, 0.5], [0.9, 0.1]], np.float32)
    corrected = trainer_calibration.Calibration(2.0).correct(array)
    assert math.isnan(corrected[0, 0]) and corrected[0, 1] == 0.5
    assert corrected[1].tolist() == pytest.approx([0.75, 0.25])


@given(st.lists(st.tuples(outputs(), st.sampled_from("abcd")), max_size=60))
def test_a_temperature_never_raises_the_log_loss(pairs: list[tuple[list[float], str]]) -> None:
    """Of the rows with known classes; and no temperature near it is better."""
    rows = make_rows([row for row, _ in pairs], [label for _, label in pairs])
    temperature = fit_temperature(rows)
    assert BOUNDS[0] <= temperature <= BOUNDS[1]
    known = [row for row in rows if row.label in row.classes]
    if temperature == NEUTRAL or not known:
        return

    def measure(heat: float) -> float:
        return log_loss(ScoredRows.collect(apply_temperature(row, heat) for row in known))

    assert measure(temperature) <= measure(NEUTRAL) + 1e-12
    for factor in (0.95, 1.05):
        near = min(max(temperature * factor, BOUNDS[0]), BOUNDS[1])
        assert measure(temperature) <= measure(near) + 1e-9


@given(st.integers(0, 2**32 - 1), st.floats(0.3, 4.0))
def test_a_network_that_is_too_sure_is_found_out(seed: int, temperature: float) -> None:
    """Labels are drawn from probabilities, of which the network gives powers."""
    random = np.random.default_rng(seed)
    right = random.dirichlet((1, 1, 1), size=2000)
    labels = [NAMES[random.choice(3, p=row)] for row in right]
    powers = np.maximum(right, 1e-5) ** temperature
    rows = make_rows((powers / powers.sum(axis=1, keepdims=True)).tolist(), labels)
    found = fit_temperature(rows)
    assert found == pytest.approx(temperature, rel=0.2)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40),
    st.sampled_from(["f1", "balanced_accuracy"]),
)
def test_a_threshold_is_the_best_one_for_the_metric(
    pairs: list[tuple[float, bool]], metric: str
) -> None:
    rows = ScoredRows.collect(ScoredRow("ab"[second], {"a": 1 - p, "b": p}) for p, second in pairs)
    calibration = fit_calibration(CLASSIFICATION, metric, rows)
    if calibration.threshold is None:
        return
    heated = calibration._replace(threshold=None).correct(rows)
    score = SCORES[metric]
    reached = score(calibration.correct(rows))
    assert reached >= score(heated) - 1e-12
    for threshold in sorted({row.classes["b"] for row in heated})[1:]:
        assert reached >= score(calibration._replace(threshold=threshold).correct(rows)) - 1e-12


def test_a_rare_class_is_predicted_from_a_smaller_probability_on() -> None:
    random = np.random.default_rng(1)
    shares = random.beta(1, 6, size=1000)
    rows = ScoredRows.collect(
        ScoredRow("ab"[random.random() < p], {"a": 1 - p, "b": p}) for p in shares.tolist()
    )
    threshold = fit_calibration(CLASSIFICATION, "f1", rows).threshold
    assert threshold is not None and 0.1 < threshold < 0.4
    for metric in ("accuracy", "auc", "log_loss", "brier", "average_precision"):
        assert fit_calibration(CLASSIFICATION, metric, rows).threshold is None
    three = ScoredRows.collect(ScoredRow(row.label, {**row.classes, "c": 0.0}) for row in rows)
    assert fit_calibration(CLASSIFICATION, "f1", three).threshold is None


@given(TEMPERATURES, st.one_of(st.none(), st.floats(0, 1)))
def test_what_is_stored_is_read_to_the_bit(temperature: float, threshold: float | None) -> None:
    calibration = Calibration(temperature=temperature, threshold=threshold)
    assert Calibration.from_json(calibration.to_json()) == calibration
    header = {"calibration": json.loads(json.dumps(calibration.describe(NAMES)))}
    for_trainer = trainer_calibration.Calibration.from_header(header)
    assert (for_trainer.temperature, for_trainer.threshold) == (temperature, threshold)


@given(outputs(), outputs(), st.floats(0.2, 2.0), st.integers(0, 2))
def test_slopes_explain_the_difference_of_probabilities(
    begin: list[float], end: list[float], temperature: float, chosen: int
) -> None:
    """Of the temperatures that are usual; of others, the gap tells what is missing."""
    calibration = trainer_calibration.Calibration(temperature)
    first, last = np.array(begin), np.array([end])
    slopes = calibration.average_slopes(first, last, np.array([chosen]))
    gain = calibration.correct(last) - calibration.correct(first[np.newaxis])
    explained = ((last - first) * slopes).sum()
    assert explained == pytest.approx(gain[0, chosen], abs=2e-3)


def test_slopes_without_a_temperature_are_those_of_the_output() -> None:
    neutral = trainer_calibration.NO_CALIBRATION
    rows = np.array([[0.2, 0.8], [0.6, 0.4]])
    slopes = neutral.average_slopes(np.array([0.5, 0.5]), rows, np.array([1, 0]))
    assert slopes.tolist() == [[0.0, 1.0], [1.0, 0.0]]


DAMAGED = {
    "no number": {"temperature": "x"},
    "0": {"temperature": 0},
    "negative": {"temperature": -1},
    "not a number": {"temperature": math.nan},
    "infinite": {"temperature": math.inf},
    "a threshold above 1": {"temperature": 1, "threshold": 1.5},
    "a threshold that is none": {"temperature": 1, "threshold": math.nan},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_calibrations_are_refused(damage: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        Calibration.from_json(json.dumps(DAMAGED[damage]))
    with pytest.raises(RequestError):
        trainer_calibration.Calibration.from_header({"calibration": DAMAGED[damage]})
