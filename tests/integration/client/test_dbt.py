"""docs/examples/dbt is a project that dbt runs: it trains, scores rows, and tests
what it has scored.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import passengers
import pytest
from sqlalchemy.engine import make_url
from workbench import Workbench

ROOT = Path(__file__).parents[3]
DBT = ROOT / ".venv" / "dbt" / "bin" / "dbt"
ARGUMENTS = (
    '{source: passengers, target: survived, options: {models: "{linear}", configs: 1, '
    "epochs: 2, seed: 1}}"
)
Dbt = Callable[..., str]
pytestmark = [pytest.mark.long, pytest.mark.postgresql("dbt has no adapter for Greenplum 7")]


@pytest.fixture
def dbt(bench: Workbench, tmp_path: Path) -> Iterator[Dbt]:
    """dbt as the ordinary role calls it; what it prints."""
    url = make_url(bench.url)
    place = {
        "PGHOST": str(url.query["host"]),
        "PGPORT": str(url.port),
        "PGUSER": str(url.username),
    }
    folder = str(ROOT / "docs" / "examples" / "dbt")
    folders = {"DBT_PROJECT_DIR": folder, "DBT_PROFILES_DIR": folder}
    written = {"DBT_LOG_PATH": str(tmp_path / "logs"), "DBT_TARGET_PATH": str(tmp_path / "target")}
    variables = {
        **place,
        "PGDATABASE": str(url.database),
        "DBT_SCHEMA": "scored",
        **folders,
        **written,
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **variables}

    def called(*arguments: str) -> str:
        command = [str(DBT), "--no-use-colors", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    assert DBT.exists(), "make .venv/dbt/made installs dbt"
    yield called


def test_the_project_trains_scores_and_tests(bench: Workbench, dbt: Dbt) -> None:
    bench.rows(passengers.TABLE)
    assert "1 | linear | 2 | completed | accuracy | 0." in dbt(
        "run-operation", "train", "--args", ARGUMENTS
    )
    assert passengers.versions(bench) == 1
    assert "PASS=6 WARN=0 ERROR=0 SKIP=0" in dbt("build")
    scored = "SELECT id::text, prediction, probability FROM scored.passengers_scored ORDER BY 1"
    assert bench.rows(scored) == [row[:3] for row in passengers.predicted(bench)]
