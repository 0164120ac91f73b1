"""Labels become numbers of the target in double precision; both ends of the wire do the same."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_recipes import TARGET_SCALES
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.recipe.target_scale import TargetScale
from cerebro_trainer.data import target_scale
from cerebro_trainer.data.target_scale import ResultUnits
from cerebro_trainer.errors import RequestError

COMPILE = {"loss": "mean_squared_error", "metrics": ["root_mean_squared_error", "r2_score", "mae"]}


@given(TARGET_SCALES, st.lists(st.floats(-1e6, 1e6, width=32), min_size=1))
def test_a_trainer_predicts_what_the_backend_predicts(
    scale: TargetScale, outputs: list[float]
) -> None:
    read = target_scale.TargetScale.from_header({"scale": scale.to_json()}, "scale")
    array = np.array(outputs, np.float32)
    assert read.predict(array).tolist() == [scale.prediction(output) for output in outputs]
    assert read.restore(array).tolist() == [scale.number(output) for output in outputs]
    assert all(scale.low <= number <= scale.high for number in read.predict(array).tolist())


def test_an_output_that_is_no_number_stays_one() -> None:
    scale = target_scale.TargetScale(0.0, 1.0, 0.5, 0.25)
    assert np.isnan(scale.predict(np.array([np.nan], np.float32))).all()


@given(TARGET_SCALES)
def test_losses_are_squares_and_shares_have_no_unit(scale: TargetScale) -> None:
    units = ResultUnits.from_header({"scale": scale.to_json()}, COMPILE)
    unit = scale.deviation
    converted = units.convert_results({"loss": 4.0, "metrics": [2.0, 0.5, 3.0]})
    assert converted == {"loss": 4.0 * unit**2, "metrics": [2.0 * unit, 0.5, 3.0 * unit]}
    assert units.convert_loss(4.0) == converted["loss"]


@pytest.mark.parametrize("value", [None, "1", True, float("inf"), float("nan")])
def test_a_scale_without_numbers_is_refused(value: object) -> None:
    entry = {"low": 0, "high": 1, "offset": 0.5, "deviation": value}
    with pytest.raises(RequestError, match=r"deviation|finite"):
        target_scale.TargetScale.from_header({"scale": entry}, "scale")
