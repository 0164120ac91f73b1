"""The commands at the head of docs/how-to/exports.md, in their order, in one folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from workbench import Workbench, several

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "exports.md"
PASSENGERS = """
    CREATE TABLE passengers AS
    SELECT n AS id, n * 31 % 97 / 10.0 AS fare, n % 3 = 0 AS survived FROM generate_series(1, 90) n;
    ALTER TABLE passengers ADD PRIMARY KEY (id)"""
QUICK = "models => '{linear}', configs => 1, epochs => 1, ensemble => 1, seed => 1, workers => 1"
# In one process, which imports the framework once.
RUN_ALL = """
import json, os, shlex, sys
from cerebro_db.cli import main
folder, lines = sys.argv[1:]
os.chdir(folder)
for line in json.loads(lines):
    sys.argv = shlex.split(line)
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, line
"""


def commands() -> list[str]:
    """Return the lines of the first block of the page."""
    block = re.search(r"\n\n((?:    cerebro-db export .*\n)+)", PAGE.read_text())
    assert block
    return [line.strip() for line in block[1].splitlines()]


@pytest.mark.long
def test_each_line_of_the_page_writes_files_of_its_own(bench: Workbench, tmp_path: Path) -> None:
    bench.rows(PASSENGERS)
    for _ in range(2):
        bench.rows(f"SELECT * FROM cerebro.train('passengers', 'survived', {QUICK})")
    bench.rows(
        "SELECT * FROM cerebro.train('passengers', 'survived', 'passengers_trees', "
        "models => '{boosting}', configs => 1, epochs => 2, ensemble => 1, seed => 1)"
    )
    bench.pack("iris_packed", 1)
    bench.configure("iris_configs", several(3))
    run_id = bench.fit("iris_packed", "iris_model", "iris_configs", 1, seed=1)
    store = f"sqlite:///{tmp_path}/store.db"
    lines = [
        line.replace(" 12 ", f" {run_id} ").replace("http://localhost:5000", store)
        + f" --url '{bench.url}'"
        for line in commands()
    ]
    assert len(lines) > 6
    words = [sys.executable, "-c", RUN_ALL, str(tmp_path), json.dumps(lines)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    beside = ["passengers.keras", "passengers.onnx", "iris.keras"]
    for name in beside:
        assert (tmp_path / name).stat().st_size > 0
        json.loads((tmp_path / f"{name}.json").read_text())
    assert "onnx_inputs" in json.loads((tmp_path / "passengers.onnx.json").read_text())
    assert "onnx_inputs" not in json.loads((tmp_path / "passengers.keras.json").read_text())
