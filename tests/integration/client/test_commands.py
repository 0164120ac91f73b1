"""Commands that read runs, as a person or a program calls them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from servers import Database


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-m", "cerebro_db", *arguments]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_where_there_are_no_runs_there_is_an_empty_document(database: Database) -> None:
    done = called("runs", "--json", "--url", database.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_run_that_is_not_there_is_refused_on_standard_error_alone(database: Database, form: tuple[str, ...]) -> None:
    done = called("leaderboard", "1000000", *form, "--url", database.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "run 1000000 does not exist" in done.stderr
    assert "HINT" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage(database: Database) -> None:
    assert called("leaderboard", "first", "--url", database.url).returncode == 2
