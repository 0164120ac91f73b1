"""A run as event files: TensorBoard's own reader finds every value that the log has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from workbench import Workbench, several

import cerebro_db
from cerebro_db import errors

# In a process without TensorFlow, for which the reader has a stand-in of its own.
READ = """
import json, pathlib, sys
sys.modules["tensorflow"] = None
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
told = {}
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    scalars = {tag: [(e.step, e.value, e.wall_time) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
    begun = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    data = plugin_data_pb2.HParamsPluginData.FromString(begun).session_start_info.hparams
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in data.items()}
    told[folder.name] = {"scalars": scalars, "hparams": values}
print(json.dumps(told))
"""


def test_tensorboard_reads_every_value_of_the_log(bench: Workbench, tmp_path: Path) -> None:
    bench.pack("points_packed", 2)
    bench.configure("points_configs", several(2))
    run_id = bench.fit("points_packed", "points_model", "points_configs", 3, seed=1, metrics_compute_frequency=1)
    folder = tmp_path / "events"
    with cerebro_db.connect(bench.url) as session:
        session.export_tensorboard(run_id, folder)
        with pytest.raises(errors.DuplicateObject, match="exists already"):
            session.export_tensorboard(run_id, folder)
        session.export_tensorboard(run_id, folder, force=True)
        with pytest.raises(errors.UndefinedObject, match="run 77"):
            session.export_tensorboard(77, tmp_path / "other")
        params = {f"config_{each.mst_key}": each.params for each in session.leaderboard(run_id)}
    done = subprocess.run([sys.executable, "-I", "-c", READ, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    found = {
        (name, *tag.split("/", 1), step): (value, time)
        for name, of in told.items()
        for tag, scalars in of["scalars"].items()
        for step, value, time in scalars
    }
    rows = bench.rows(
        "SELECT 'config_' || mst_key, dataset, name, epoch, value, extract(epoch FROM time)::float8"
        " FROM cerebro.metric WHERE run_id = %s",
        run_id,
    )
    assert len(rows) == len(found) >= 2 * 3 * 2
    for *key, value, time in rows:
        assert found[tuple(key)][0] == np.float32(value) and abs(found[tuple(key)][1] - time) < 1e-3
    for name, of in told.items():
        assert of["hparams"]["mst_key"] == int(name.removeprefix("config_"))
        assert {key: of["hparams"][key] for key in params[name]} == {key: value for key, value in params[name].items()}
    assert not (tmp_path / "other").exists()
