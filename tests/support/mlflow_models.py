"""Models that were registered in MLflow, which predict in a process that has nothing of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from shops import COLUMNS, check_answers
from workbench import Workbench

REGISTERED = """
import json, pickle, sys
sys.modules["cerebro_db"] = sys.modules["cerebro_plpy"] = None
import mlflow, pandas
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model(sys.argv[2])
frame = pandas.DataFrame(pickle.load(open(sys.argv[3], "rb")))
frame.index = frame.index + 7
told = model.predict(frame)
assert list(told.index) == list(frame.index)
print(json.dumps({"names": model.metadata.signature.inputs.input_names(), **told.to_dict("list")}))
"""
"""Prints the predictions of a model for the rows in a file."""


def run_alone(code: str, *arguments: object, folder: Path) -> dict[str, Any]:
    """Return what a process prints that has nothing of ours."""
    words = [sys.executable, "-I", "-W", "ignore", "-c", code, *map(str, arguments)]
    process = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    return dict(json.loads(process.stdout.splitlines()[-1]))


def check_registered(
    bench: Workbench, source: str, tmp_path: Path, *, model: str = "", apart: float = 1e-6
) -> None:
    """Check that a model in MLflow predicts as the database does, for the rows in the file `given`.

    Args:
        source: the table of the rows, without the suffix of later ones.
        model: name of the model in the database; that of the source by default.
        apart: see `check_answers`.
    """
    name = model or source
    store = f"sqlite:///{tmp_path}/store.db"
    words = ["registered", name, "--name", "shops", "--tracking-uri", store, "--url", bench.url]
    process = subprocess.run(
        [sys.executable, "-I", "-m", "cerebro_db", "export", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stdout == "models:/shops/1\n"
    answers = run_alone(REGISTERED, store, "models:/shops/1", tmp_path / "given", folder=tmp_path)
    assert set(answers.pop("names")) <= set(COLUMNS)
    check_answers(bench, name, f"{source}_later", answers, apart)
