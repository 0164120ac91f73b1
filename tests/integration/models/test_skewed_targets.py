"""Targets that are predicted by their logarithms: what a call tries, predicts, explains, exports
and repeats.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import keras
import numpy as np
import pytest
from shops import columns
from workbench import Workbench

import cerebro_db
from cerebro_db.export.recipe.rows import RawRows

# What Keras with TensorFlow does to arrays of numpy 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
VISITS = """
    CREATE TABLE visits AS
    SELECT n AS id, n % 37 / 37.0 AS age, chr(97 + n % 3) AS plan,
        floor(exp(3 * (n % 37) / 37.0) + n % 3 + n * 7919 % 11 / 11.0)::integer AS visits
    FROM generate_series(1, 400) n
"""
PREDICTIONS = (
    "SELECT prediction FROM cerebro.predict('visits', 'visits', 'id') ORDER BY id::integer"
)


@pytest.fixture(scope="module")
def clinic(bench: Workbench) -> Workbench:
    """A database with a model of a skewed count."""
    bench.rows(VISITS)
    bench.rows(
        "SELECT FROM cerebro.train('visits', 'visits', 'visits', columns => 'age, plan', "
        "models => '{linear}', configs => 1, epochs => 8, ensemble => 1, "
        "refit => 'none', seed => 1, "
        """task => 'regression', space => '{"link": "log", "lr": 0.05}')"""
    )
    return bench


def test_logarithms_are_the_second_configuration_of_a_skewed_target(clinic: Workbench) -> None:
    links = clinic.rows(
        "SELECT what, data FROM cerebro.plan(target => 'visits', model => 'squares', "
        "query => 'SELECT age, plan, visits * visits AS visits FROM visits', "
        "models => '{linear,boosting}', configs => 4, epochs => 3, seed => 1, "
        "task => 'regression') WHERE section = 'configuration'"
    )
    found = [(what.partition(":")[0], data["link"]) for what, data in links]
    assert sorted(found) == sorted(product(("linear", "boosting"), ("identity", "log")))


def test_predictions_follow_the_exponential(clinic: Workbench) -> None:
    """They are at least the lowest number, and grow by factors as the column grows by steps."""
    numbers = np.array([float(number) for (number,) in clinic.rows(PREDICTIONS)])
    (lowest,) = clinic.rows("SELECT min(visits) FROM visits")[0]
    assert numbers.min() >= lowest
    steps = [numbers[n : n + 3].mean() - lowest for n in (3, 12, 21)]
    assert steps[2] / steps[1] == pytest.approx(steps[1] / steps[0], rel=0.35)
    assert steps[2] > 1.5 * steps[1]


def test_a_version_by_logarithms_is_verified_and_explained(clinic: Workbench) -> None:
    assert all(ok for (ok,) in clinic.rows("SELECT ok FROM cerebro.verify('visits')"))
    strongest = clinic.rows(
        "SELECT column_name FROM cerebro.importance('visits', 'visits') ORDER BY importance DESC"
    )
    assert strongest[0] == ("age",)


def test_an_export_has_the_exponential(clinic: Workbench, tmp_path: Path) -> None:
    with cerebro_db.connect(clinic.url) as session:
        network, description = session.export_keras("visits", tmp_path / "visits.keras")
    rows = RawRows.of(description.read_text())
    inputs = rows.inputs(columns(clinic, "visits", ["age", "plan"]))
    output = keras.saving.load_model(network).predict([*inputs.values()], verbose=0)
    expected = [float(number) for (number,) in clinic.rows(PREDICTIONS)]
    np.testing.assert_allclose(rows.answers(output).prediction, expected, atol=1)
