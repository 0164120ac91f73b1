"""Commands that read runs, as a person or a program calls them."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest
from commands import called
from servers import Database

ALONE = (sys.executable, "-I", "-m", "cerebro_db")
"""The command line in a process of its own."""


def test_where_there_are_no_runs_there_is_an_empty_document(database: Database) -> None:
    done = called("runs", "--json", "--url", database.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == []


def test_a_run_that_is_not_there_is_refused_on_standard_error_alone(database: Database) -> None:
    words = ("leaderboard", "1000000", "--url", database.url)
    alone = subprocess.run(
        [*ALONE, *words], cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    for done in (alone, called(*words, "--json")):
        assert (done.returncode, done.stdout) == (1, "")
        assert "run 1000000 does not exist" in done.stderr
        assert "HINT" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (("leaderboard", "first"), 2, "{run}"),
        (("train", "nowhere", "y"), 1, "nowhere"),
        (("train", "nowhere", "y", "--space", "{"), 2, "is not JSON"),
        (("train", "nowhere", "y", "--confgs", "3"), 2, "No such option"),
        (("predict", "nobody", "pg_class"), 1, "nobody"),
    ],
)
def test_wrong_calls_say_what_is_wrong(
    database: Database, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = called(*arguments, "--url", database.url)
    assert (
        (done.returncode, done.stdout) == (code, "")
        and words in done.stderr
        and "Traceback" not in done.stderr
    )


@pytest.fixture(scope="module")
def trained(shared_database: Database) -> dict[str, str]:
    """A run of several configurations that the command has trained, and the model that came of
    it.
    """
    session = psycopg2.connect(shared_database.url)
    session.autocommit = True
    with session.cursor() as cursor:
        cursor.execute(
            'CREATE TABLE flips AS SELECT n AS id, sin(n) AS x, n % 3 AS "<b>$", sin(n) > 0 AS up'
            " FROM generate_series(1, 200) n"
        )
    session.close()
    few = (
        "--configs",
        "3",
        "--epochs",
        "2",
        "--ensemble",
        "1",
        "--models",
        "linear",
        "--seed",
        "1",
        "--workers",
        "1",
        "--refit",
        "none",
    )
    space = ("--space", '{"batch_size": 32}', "--budget", "1 hour")
    done = called(
        "train", "flips", "up", "--model", "ups", *few, *space, "--url", shared_database.url
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(called("runs", "--json", "--url", shared_database.url).stdout)
    return {
        "run": str(run["run_id"]),
        "model": "ups",
        "url": shared_database.url,
        "told": done.stdout,
    }


def test_from_a_table_to_predictions(trained: dict[str, str], tmp_path: Path) -> None:
    url = trained["url"]
    assert "model 'ups'" in trained["told"] and "completed" in trained["told"]
    (run,) = json.loads(called("runs", "--json", "--url", url).stdout)
    board = json.loads(called("leaderboard", trained["run"], "--json", "--url", url).stdout)
    assert run["status"] == "completed" and len(board) == 3
    assert {(config["status"], config["params"]["batch_size"]) for config in board} == {
        ("completed", 32)
    }
    (model,) = json.loads(called("models", "--json", "--url", url).stdout)
    (version,) = json.loads(called("models", "ups", "--json", "--url", url).stdout)
    assert (
        model["model"] == version["model"] == "ups"
        and version["deployed"]
        and version["run_id"] == run["run_id"]
    )
    said = json.loads(
        called("predict", "ups", "flips", "--id", "id", "--json", "--url", url).stdout
    )
    assert len(said) == 200 and {row["prediction"] for row in said} <= {"true", "false"}
    written = tmp_path / "ups.csv"
    arguments = ("predict", "ups", "flips", "--id", "id", "-o", str(written), "--url", url)
    assert called(*arguments).returncode == 0
    with written.open(newline="") as file:
        cells = {row["id"]: row for row in csv.DictReader(file)}
    assert {key: row["prediction"] for key, row in cells.items()} == {
        str(row["id"]): row["prediction"] for row in said
    }
    for row in said:
        assert json.loads(cells[str(row["id"])]["probabilities"]) == row["probabilities"]
    again = called(*arguments)
    assert (
        again.returncode == 2
        and "--output" in again.stderr
        and len(written.read_text().splitlines()) == 201
    )


def plotted(
    trained: dict[str, str], kind: str, path: Path, *more: str
) -> subprocess.CompletedProcess[str]:
    subject = trained["run" if kind in ("curves", "parallel", "lanes") else "model"]
    return called("plot", subject, "--kind", kind, "-o", str(path), *more, "--url", trained["url"])


@pytest.mark.parametrize(
    "kind, more",
    [
        ("curves", ()),
        ("parallel", ()),
        ("lanes", ()),
        ("importance", ()),
        ("importance", ("--source", "flips")),
        ("confusion", ("--source", "flips")),
    ],
)
def test_pictures(
    trained: dict[str, str], tmp_path: Path, kind: str, more: tuple[str, ...]
) -> None:
    path = tmp_path / "picture.svg"
    done = plotted(trained, kind, path, *more)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}\n", "")
    assert "</svg>" in path.read_text()


def test_a_picture_replaces_a_file_only_by_force(trained: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    path.write_text("something else")
    refused = plotted(trained, "curves", path)
    assert (
        refused.returncode == 2
        and "exists already" in refused.stderr
        and path.read_text() == "something else"
    )
    assert (
        plotted(trained, "curves", path, "--force").returncode == 0 and "</svg>" in path.read_text()
    )
    nowhere = plotted(trained, "curves", path / "picture.svg")
    assert nowhere.returncode == 2 and "there is no folder" in nowhere.stderr


@pytest.mark.parametrize("output", ["/dev/full", "/proc/board.txt"])
def test_an_output_that_cannot_be_written_is_one_line(trained: dict[str, str], output: str) -> None:
    """Of the standard output and of a file."""
    words = ["leaderboard", trained["run"], "--json"]
    if output == "/proc/board.txt":
        words = ["export", "tensorboard", trained["run"], "-o", output]
    with open("/dev/full" if output == "/dev/full" else os.devnull, "w") as stream:
        command = [*ALONE, *words, "--url", trained["url"]]
        done = subprocess.run(command, cwd="/", stdout=stream, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ERROR:  ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["curves", "parallel", "lanes", "importance"])
def test_there_is_no_picture_of_what_is_not_there(
    trained: dict[str, str], tmp_path: Path, kind: str
) -> None:
    done = plotted({**trained, "run": "1000000", "model": "nobody"}, kind, tmp_path / "picture.png")
    assert (
        (done.returncode, done.stdout) == (1, "")
        and "HINT" in done.stderr
        and "Traceback" not in done.stderr
    )
    assert not [*tmp_path.iterdir()]


def test_a_shell_completes_runs_and_models(trained: dict[str, str]) -> None:
    script = Path(sys.executable).with_name("cerebro-db")

    def offered(words: str) -> list[str]:
        line = f"cerebro-db {words}"
        asked = {
            "_CEREBRO_DB_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        return subprocess.run(
            [script], capture_output=True, text=True, env=asked, check=True
        ).stdout.split()

    url = f"--url {trained['url']}"
    assert offered(f"leaderboard {url} ") == [trained["run"]]
    assert offered(f"predict {url} u") == ["ups"]
    assert sorted(offered(f"plot {url} ")) == sorted([trained["run"], "ups"])


def test_checks_are_one_document(database: Database) -> None:
    done = called("check", "--json", "--url", database.url)
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "") and {step["state"] for step in found} == {"OK"}
    wrong = called("check", "--json", "--url", "postgresql://nobody@/x?host=/nowhere")
    assert wrong.returncode == 1 and [step["state"] for step in json.loads(wrong.stdout)] == [
        "FAIL"
    ]


def test_where_no_server_runs_its_status_says_so(tmp_path: Path) -> None:
    done = called("server", "status", "--json", "--data", str(tmp_path))
    ((found),) = json.loads(done.stdout)
    assert (
        done.returncode == 3 and found["url"] is None and found["data"] == str(tmp_path.resolve())
    )


def test_the_check_reminds_of_runs_that_ended_long_ago(
    trained: dict[str, str], shared_database: Database
) -> None:
    """Its remedy frees their disk; the model still predicts."""

    def old_runs() -> list[dict[str, str]]:
        done = called("check", "--json", "--url", shared_database.superuser_url)
        assert done.returncode == 0, done.stderr
        return [step for step in json.loads(done.stdout) if step["step"] == "old runs"]

    with psycopg2.connect(shared_database.superuser_url) as session, session.cursor() as cursor:
        assert old_runs() == []
        cursor.execute(
            "UPDATE cerebro.run_log SET ended_at = ended_at - interval '31 days' WHERE run_id = %s",
            (trained["run"],),
        )
        session.commit()
        (finding,) = old_runs()
        assert finding["state"] == "WARN"
        assert re.search(r"cerebro: 1 with \d+ \wB", finding["told"])
        statement = re.search(r"SELECT [^;]+;", finding["remedy"])
        assert statement is not None
        cursor.execute("SET ROLE cerebro")
        cursor.execute(statement[0])
        session.commit()
    assert old_runs() == []
    done = called("predict", "ups", "flips", "--json", "--url", trained["url"])
    assert done.returncode == 0, done.stderr
