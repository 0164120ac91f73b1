"""What frozen layers give is computed once: the same models come out, and nothing else that a user sees changes."""

from __future__ import annotations

import numpy as np
import pytest
from models import dense, layer, sequential
from workbench import Workbench, several

FROZEN = {"trainable": False}
WIDTH = 256
FRONT = (
    dense(WIDTH, "first", **FROZEN),
    layer("BatchNormalization", "normal", **FROZEN),
    dense(6, "second", "tanh", **FROZEN),
)
HEADS = (
    sequential([4], *FRONT, dense(3, "output", "softmax")),
    sequential([4], *FRONT, layer("Dropout", "drop", rate=0.3), dense(5, "hidden"), dense(3, "output", "softmax")),
)
FRONT_FLOATS = 5 * WIDTH + 4 * WIDTH + (WIDTH + 1) * 6
HEAD_FLOATS = (7 * 3, 7 * 5 + 6 * 3)
BUDGET = 1
PLAIN = 0
ITERATIONS = 3


@pytest.fixture(scope="module", autouse=True)
def heads(bench: Workbench) -> None:
    """Points in three segments, half of them for validation too, and two heads on a frozen front with weights."""
    draw = np.random.default_rng(1)
    front = draw.normal(size=FRONT_FLOATS).astype("<f4") / 3
    front[8 * WIDTH : 9 * WIDTH] = 1  # the variances
    for head, floats in zip(HEADS, HEAD_FLOATS, strict=True):
        weights = np.concatenate([front, draw.normal(size=floats).astype("<f4")]).tobytes()
        bench.rows("SELECT load_keras_model('models', %s::json, %s)", head, weights)
    bench.pack("packed", 3)
    bench.rows("CREATE TABLE half AS SELECT * FROM points WHERE id % 2 = 0")
    bench.rows("SELECT validation_preprocessor_dl('half', 'packed_val', 'label', 'x', 'packed', 8)")
    bench.rows("SELECT load_model_selection_table('models', 'mst', ARRAY[2, 3], %s, ARRAY['batch_size=8'])", several(2))


def fit(bench: Workbench, output: str, **named: object) -> int:
    options = {"seed": 3, "workers": 2, "validation_table": "packed_val", "metrics_compute_frequency": 1, **named}
    return bench.fit("packed", output, "mst", ITERATIONS, **options)


def cuts(bench: Workbench, run_id: int) -> list[str | None]:
    """On what each configuration of a run was trained."""
    rows = bench.rows("SELECT cut FROM cerebro.config_log WHERE run_id = %s ORDER BY mst_key", run_id)
    return [cut for (cut,) in rows]


def metrics(bench: Workbench, run_id: int) -> np.ndarray:
    """All metrics of a run."""
    query = "SELECT value FROM cerebro.metric WHERE run_id = %s ORDER BY mst_key, epoch, dataset, name"
    return np.array([value for (value,) in bench.rows(query, run_id)])


def weights(bench: Workbench, table: str) -> dict[int, np.ndarray]:
    return {key: np.frombuffer(value, "<f4") for key, value in bench.weights(table).items()}


def test_the_same_models_come_out(bench: Workbench) -> None:
    plain, stored = fit(bench, "plain", feature_budget=PLAIN), fit(bench, "stored", feature_budget=BUDGET)
    assert cuts(bench, plain) == [None] * 4 and cuts(bench, stored) == ["second"] * 4
    one, other = weights(bench, "plain"), weights(bench, "stored")
    for key in one:
        assert (one[key][:FRONT_FLOATS] == other[key][:FRONT_FLOATS]).all()
        np.testing.assert_allclose(one[key], other[key], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(metrics(bench, plain), metrics(bench, stored), rtol=1e-5, atol=1e-6)
    orders = "SELECT mst_key, epoch, segment_id, rows FROM cerebro.visit WHERE run_id = %s ORDER BY 1, 2, 3"
    assert bench.rows(orders, plain) == bench.rows(orders, stored)
    left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND relname ~ '_f[0-9]+_'"
    assert bench.value(left) == 0
