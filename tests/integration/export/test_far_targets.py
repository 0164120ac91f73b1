"""Exports of a model whose target is far from 0: their networks end in double precision."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import onnxruntime
import pytest
from safetensors import safe_open
from shops import columns
from workbench import Workbench

import cerebro_db
from cerebro_db.export.recipe.rows import RawRows

# What Keras with TensorFlow does to arrays of numpy 2.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:In the future `np:FutureWarning"),  # of tf2onnx, too
]
UNIT = 12.5


def test_exports_predict_what_the_database_predicts(bench: Workbench, tmp_path: Path) -> None:
    """To a millionth of the spread of the target, of which float32 has none left so far away."""
    bench.rows(
        f"CREATE TABLE stops AS SELECT n AS id, n % 101 AS x, 1700000000 + {UNIT} * (n % 101) AS y "
        "FROM generate_series(1, 300) n"
    )
    bench.rows(
        "SELECT FROM cerebro.train('stops', 'y', 'stops', columns => 'x', models => '{linear}', "
        "configs => 1, epochs => 3, ensemble => 1, "
        "refit => 'none', seed => 1, task => 'regression')"
    )
    expected = [
        float(number)
        for (number,) in bench.rows(
            "SELECT prediction FROM cerebro.predict('stops', 'stops', 'id') ORDER BY id::integer"
        )
    ]
    with cerebro_db.connect(bench.url) as session:
        network, *_ = session.export_keras("stops", tmp_path / "stops.keras")
        graph, description = session.export_onnx("stops", tmp_path / "stops.onnx")
        session.export_safetensors("stops", tmp_path / "stops")
    rows = RawRows.of(description.read_text())
    given = columns(bench, "stops", ["x"])
    inputs = rows.inputs(given)
    rebuilt = keras.saving.deserialize_keras_object(
        json.loads((tmp_path / "stops" / "architecture.json").read_text())
    )
    with safe_open(tmp_path / "stops" / "weights.safetensors", "np") as weights:
        names = json.loads(weights.metadata()["order"])
        rebuilt.set_weights([weights.get_tensor(name) for name in names])
    outputs = {
        "keras": keras.saving.load_model(network).predict(*inputs.values(), verbose=0),
        "onnx": onnxruntime.InferenceSession(graph).run(None, rows.raw(given))[0],
        "safetensors": rebuilt.predict(*inputs.values(), verbose=0),
    }
    for name, output in outputs.items():
        assert output.dtype == np.float64, name
        found = rows.answers(output).prediction
        np.testing.assert_allclose(found, expected, rtol=0, atol=100 * UNIT * 1e-6, err_msg=name)
