"""A run in MLflow: what its client reads is what the log has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from workbench import Workbench, several

# In processes of their own: MLflow warns of its libraries, and keeps threads.
READ = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=sys.argv[1])
(experiment,) = [each for each in client.search_experiments() if each.name == "trials"]
told = []
for run in client.search_runs([experiment.experiment_id]):
    history = {name: [(m.step, m.value, m.timestamp) for m in client.get_metric_history(run.info.run_id, name)]
               for name in run.data.metrics}
    told.append({"id": run.info.run_id, "status": run.info.status, "params": run.data.params,
                 "tags": run.data.tags, "metrics": history})
print(json.dumps(told))
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
    again = command(run_id, *options)
    assert again.returncode == 1 and "already" in again.stderr and "Traceback" not in again.stderr
    second = command(run_id, *options, "--force")
    assert second.returncode == 0, second.stderr
    done = subprocess.run([sys.executable, "-I", "-c", READ, store], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    runs = {run["tags"].get("mst_key"): run for run in json.loads(done.stdout)}
    parent = runs.pop(None)
    assert parent["id"] == second.stdout.strip() and parent["tags"]["run_id"] == str(run_id)
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
