"""A run in MLflow and as event files: what their own readers find is what the log has."""

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

# In a process of its own: MLflow warns of its libraries, keeps threads, and takes seconds to
# import. The first export is that of the command line, as a person would call it.
EXPORT_AND_READ = """
import contextlib, io, json, sys
import cerebro_db
from cerebro_db.cli import main
store, url, run = sys.argv[1:]
sys.argv = ["cerebro-db", "export", "mlflow", run, "--tracking-uri", store, "--experiment",
    "trials", "--url", url]
with contextlib.redirect_stdout(io.StringIO()) as printed:
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
with cerebro_db.connect(url) as session:
    try:
        session.export_mlflow(77, store.replace("runs.db", "none.db"))
    except cerebro_db.errors.UndefinedObject as error:
        missing = str(error)
    try:
        session.export_mlflow(int(run), store, experiment="trials")
    except cerebro_db.errors.DuplicateObject as error:
        refused = str(error)
    try:
        session.export_mlflow(int(run), "file://" + store.removeprefix("sqlite://") + ".folder")
    except cerebro_db.errors.ObjectNotReady as error:
        folder = str(error)
    newest = session.export_mlflow(int(run), store, experiment="trials", force=True)
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=store)
(experiment,) = [each for each in client.search_experiments() if each.name == "trials"]
told = []
for run in client.search_runs([experiment.experiment_id]):
    history = {name: [(m.step, m.value, m.timestamp) for m in
        client.get_metric_history(run.info.run_id, name)]
               for name in run.data.metrics}
    told.append({"id": run.info.run_id, "status": run.info.status, "params": run.data.params,
                 "tags": run.data.tags, "metrics": history})
print(json.dumps({"missing": missing, "folder": folder, "refused": refused, "newest": newest,
    "first": printed.getvalue().strip(),
                  "runs": told}))
"""


@pytest.fixture(scope="module")
def run_id(bench: Workbench) -> int:
    """A run of two configurations, with metrics of each of its epochs."""
    bench.pack("points_packed", 2)
    bench.configure("points_configs", several(2))
    named = {"seed": 1, "metrics_compute_frequency": 1, "workers": 1}
    return bench.fit("points_packed", "points_model", "points_configs", 3, **named)


def test_mlflow_has_every_configuration_with_every_value(
    bench: Workbench, run_id: int, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    words = [sys.executable, "-I", "-c", EXPORT_AND_READ, store, bench.url, str(run_id)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (
        "run 77" in told["missing"]
        and not (tmp_path / "none.db").exists()
        and "already" in told["refused"]
    )
    refusal, hint = told["folder"].split("\n")
    assert "refuses: " in refusal and len(refusal) < 300 and "sqlite:///mlflow.db" in hint
    runs = {run["tags"].get("mst_key"): run for run in told["runs"]}
    parent = runs.pop(None)
    assert parent["id"] == told["newest"] != told["first"] != "" and parent["tags"][
        "run_id"
    ] == str(run_id)
    assert parent["status"] == "FINISHED" and parent["tags"]["status"] == "completed"
    found = {
        (int(key), *name.split("/", 1), step): (value, time)
        for key, run in runs.items()
        for name, values in run["metrics"].items()
        for step, value, time in values
    }
    rows = bench.rows(
        "SELECT mst_key, dataset, name, epoch, value, floor(extract(epoch FROM time) * "
        "1000)::bigint FROM cerebro.metric WHERE run_id = %s",
        run_id,
    )
    assert {tuple(key): (value, time) for *key, value, time in rows} == found and len(found) == 12
    for key, params, status in bench.rows(
        "SELECT mst_key::text, params, status FROM cerebro.config"
    ):
        assert (
            runs[key]["tags"]["mlflow.parentRunId"] == parent["id"]
            and runs[key]["tags"]["status"] == status
        )
        assert runs[key]["params"] == {
            name: v if isinstance(v, str) else json.dumps(v) for name, v in params.items()
        }


# In a process without TensorFlow, for which the reader has a stand-in of its own.
READ = """
import json, pathlib, sys
sys.modules["tensorflow"] = None
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
told = {}
for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    scalars = {tag: [(e.step, e.value, e.wall_time) for e in found.Scalars(tag)] for tag in
        found.Tags()["scalars"]}
    begun = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    data = plugin_data_pb2.HParamsPluginData.FromString(begun).session_start_info.hparams
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in data.items()}
    told[folder.name] = {"scalars": scalars, "hparams": values}
print(json.dumps(told))
"""


def test_tensorboard_reads_every_value_of_the_log(
    bench: Workbench, run_id: int, tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    with cerebro_db.connect(bench.url) as session:
        session.export_tensorboard(run_id, folder)
        with pytest.raises(errors.DuplicateObject, match="exists already"):
            session.export_tensorboard(run_id, folder)
        session.export_tensorboard(run_id, folder, force=True)
        with pytest.raises(errors.UndefinedObject, match="run 77"):
            session.export_tensorboard(77, tmp_path / "other")
        params = {f"config_{each.mst_key}": each.params for each in session.leaderboard(run_id)}
    done = subprocess.run(
        [sys.executable, "-I", "-c", READ, folder], capture_output=True, text=True
    )
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
        assert {key: of["hparams"][key] for key in params[name]} == {
            key: value for key, value in params[name].items()
        }
    assert not (tmp_path / "other").exists()
