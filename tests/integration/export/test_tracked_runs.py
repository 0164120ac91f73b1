"""A run in MLflow: what its client reads is what the log has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from workbench import Workbench, several

# In processes of their own: MLflow warns of its libraries, and keeps threads. Each takes seconds to import it.
EXPORT_AND_READ = """
import json, sys
import cerebro_db
store, url, run = sys.argv[1:]
with cerebro_db.connect(url) as session:
    try:
        session.export_mlflow(int(run), store, experiment="trials")
    except cerebro_db.errors.DuplicateObject as error:
        refused = str(error)
    newest = session.export_mlflow(int(run), store, experiment="trials", force=True)
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=store)
(experiment,) = [each for each in client.search_experiments() if each.name == "trials"]
told = []
for run in client.search_runs([experiment.experiment_id]):
    history = {name: [(m.step, m.value, m.timestamp) for m in client.get_metric_history(run.info.run_id, name)]
               for name in run.data.metrics}
    told.append({"id": run.info.run_id, "status": run.info.status, "params": run.data.params,
                 "tags": run.data.tags, "metrics": history})
print(json.dumps({"refused": refused, "newest": newest, "runs": told}))
"""


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `cerebro-db export mlflow`, as a person would."""
    words = [sys.executable, "-I", "-m", "cerebro_db", "export", "mlflow", *map(str, arguments)]
    return subprocess.run(words, cwd="/", capture_output=True, text=True)


def test_mlflow_has_every_configuration_with_every_value(bench: Workbench, tmp_path: Path) -> None:
    bench.pack("points_packed", 2)
    bench.configure("points_configs", several(2))
    run_id = bench.fit("points_packed", "points_model", "points_configs", 3, seed=1, metrics_compute_frequency=1)
    store = f"sqlite:///{tmp_path}/runs.db"
    options = ("--tracking-uri", store, "--experiment", "trials", "--url", bench.url)
    first = command(run_id, *options)
    assert first.returncode == 0, first.stderr
    words = [sys.executable, "-I", "-c", EXPORT_AND_READ, store, bench.url, str(run_id)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert "already" in told["refused"]
    runs = {run["tags"].get("mst_key"): run for run in told["runs"]}
    parent = runs.pop(None)
    assert parent["id"] == told["newest"] != first.stdout.strip() and parent["tags"]["run_id"] == str(run_id)
    assert parent["status"] == "FINISHED" and parent["tags"]["status"] == "completed"
    found = {
        (int(key), *name.split("/", 1), step): (value, time)
        for key, run in runs.items()
        for name, values in run["metrics"].items()
        for step, value, time in values
    }
    rows = bench.rows(
        "SELECT mst_key, dataset, name, epoch, value, floor(extract(epoch FROM time) * 1000)::bigint"
        " FROM cerebro.metric WHERE run_id = %s",
        run_id,
    )
    assert {tuple(key): (value, time) for *key, value, time in rows} == found and len(found) == 12
    for key, params, status in bench.rows("SELECT mst_key::text, params, status FROM cerebro.config"):
        assert runs[key]["tags"]["mlflow.parentRunId"] == parent["id"] and runs[key]["tags"]["status"] == status
        assert runs[key]["params"] == {name: v if isinstance(v, str) else json.dumps(v) for name, v in params.items()}


def test_a_run_that_is_not_there_is_refused(bench: Workbench, tmp_path: Path) -> None:
    found = command(77, "--tracking-uri", f"sqlite:///{tmp_path}/none.db", "--url", bench.url)
    assert found.returncode == 1 and "run 77" in found.stderr and not [*tmp_path.iterdir()]
