"""The Python in README.md and docs/python-client.md runs, and prints what the page says; so do the examples in SQL."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg2.extensions import connection as Connection
from servers import Database

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python-client.md"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<printed>.*?)^```\n)?", re.DOTALL | re.MULTILINE)
ADDRESS = re.compile(r'"postgresql://[^"]*"')


def psql(database: Database, script: str) -> None:
    command = ["psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--file"]
    command += [str(ROOT / "tests" / "sql" / script), database.url]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def blocks(page: Path, database: Database) -> Iterator[tuple[Any, str]]:
    """Each block of Python, compiled for this database, and what it is said to print."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        code = ADDRESS.sub(repr(database.url), found["code"])
        yield compile("\n" * line + code, str(page), "exec"), found["printed"] or ""


def test_the_page_of_the_client_is_a_true_program(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    psql(database, "iris_data.sql")
    names: dict[str, Any] = {}
    for code, printed in blocks(PAGE, database):
        exec(code, names)
        assert capsys.readouterr().out == printed
    assert "session" in names


REFERENCE = ROOT / "docs" / "sql-reference.md"
REFUSED = re.compile(r"\n### cerebro\.grant_predict, .*?(?=\n##)", re.DOTALL)
"""What Greenplum refuses, as docs/greenplum.md tells."""
EXAMPLE = re.compile(r"\nExample:\n\n((?:    .*\n|\n)+)")
SUPERUSERS = "## For superusers: "


def examples(part: str) -> str:
    """The examples in a part of the page as they stand there, and in psql's help: indented."""
    return "".join(EXAMPLE.findall(part))


def run(url: str, statements: str) -> str:
    command = ["psql", "--no-psqlrc", "--no-align", "--tuples-only", "--set", "ON_ERROR_STOP=1", url]
    done = subprocess.run(command, capture_output=True, text=True, input=statements)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_of_the_reference_follow_each_other(
    platform: str, database: Database, superuser: Connection
) -> None:
    psql(database, "iris_data.sql")
    with superuser.cursor() as cursor:
        cursor.execute("CREATE ROLE analyst")
        try:
            page = REFERENCE.read_text()
            users, superusers = (REFUSED.sub("", page) if platform == "greenplum" else page).split(SUPERUSERS)
            told = run(database.url, examples(users))
            assert len(re.findall(r"^[0-9]+\|(?:setosa|versicolor|virginica)\|0\.", told, re.MULTILINE)) == 2 * 30
            assert "\ncompleted\n" in told
            assert '"same_server": true' in run(database.superuser_url, examples(superusers))
        finally:
            cursor.execute("DROP OWNED BY analyst; DROP ROLE analyst")


def test_the_readme_goes_on_in_python_after_its_tour(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    psql(database, "tour.sql")
    ((code, _),) = blocks(ROOT / "README.md", database)
    exec(code, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert all("Adam" in line for line in lines)
