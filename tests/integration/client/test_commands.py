"""Commands that read runs, as a person or a program calls them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import psycopg2
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


def test_from_a_table_to_predictions(database: Database, tmp_path: Path) -> None:
    session = psycopg2.connect(database.url)
    with session, session.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE flips AS SELECT n AS id, sin(n) AS x, sin(n) > 0 AS up FROM generate_series(1, 60) n"
        )
    session.close()
    few = ("--configs", "1", "--epochs", "2", "--ensemble", "1", "--models", "linear", "--seed", "1")
    done = called(
        "train", "flips", "up", "--model", "ups", *few, "--space", '{"batch_size": 32}', "--url", database.url
    )
    assert done.returncode == 0, done.stderr
    assert "model 'ups'" in done.stdout and "completed" in done.stdout
    (run,) = json.loads(called("runs", "--json", "--url", database.url).stdout)
    (config,) = json.loads(called("leaderboard", str(run["run_id"]), "--json", "--url", database.url).stdout)
    assert (run["status"], config["status"], config["params"]["batch_size"]) == ("completed", "completed", 32)
    (model,) = json.loads(called("models", "--json", "--url", database.url).stdout)
    (version,) = json.loads(called("models", "ups", "--json", "--url", database.url).stdout)
    assert model["model"] == version["model"] == "ups" and version["deployed"] and version["run_id"] == run["run_id"]
    said = json.loads(called("predict", "ups", "flips", "--id", "id", "--json", "--url", database.url).stdout)
    assert len(said) == 60 and {row["prediction"] for row in said} <= {"true", "false"}
    written = tmp_path / "ups.csv"
    arguments = ("predict", "ups", "flips", "--id", "id", "-o", str(written), "--url", database.url)
    assert called(*arguments).returncode == 0
    with written.open(newline="") as file:
        rows = {row["id"]: row["prediction"] for row in csv.DictReader(file)}
    assert rows == {str(row["id"]): row["prediction"] for row in said}
    again = called(*arguments)
    assert again.returncode == 2 and "--output" in again.stderr and len(written.read_text().splitlines()) == 61


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("train", "nowhere", "y"), 1, "nowhere"),
        (("train", "nowhere", "y", "--space", "{"), 2, "is not JSON"),
        (("train", "nowhere", "y", "--confgs", "3"), 2, "No such option"),
        (("predict", "nobody", "pg_class"), 1, "nobody"),
    ],
)
def test_wrong_calls_say_what_is_wrong(database: Database, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = called(*arguments, "--url", database.url)
    assert (done.returncode, done.stdout) == (code, "") and words in done.stderr and "Traceback" not in done.stderr
