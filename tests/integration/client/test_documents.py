"""The Python of the pages runs, and prints what they say; so do the examples in SQL."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pandas
import pytest
from psycopg2.extensions import connection as Connection
from servers import Database
from sources import read_assembly

from cerebro_db.driver import get_engine

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "python-client.md"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
ADDRESS = re.compile(r'"postgresql://[^"]*"')
STATES = ("state", "state of all rows")
"""Findings about the states of a version whose only member was trained again on all rows."""


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


@pytest.mark.long
def test_the_page_of_the_client_is_a_true_program(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    psql(database, "iris_data.sql")
    names: dict[str, Any] = {}
    for code, printed in blocks(PAGE, database):
        exec(code, names)
        assert capsys.readouterr().out == printed
    assert "session" in names


SUPERUSERS = "administration.md"
REFUSED = ("train.md", "models.md")
"""Pages of models by name, which have examples that Greenplum refuses."""
REGISTER = re.compile(r"\n### cerebro\.register\n.*?(?=\n## )", re.DOTALL)
EXAMPLE = re.compile(r"\nExample:\n\n((?:    .*\n|\n)+)")


def examples(part: str) -> str:
    """The examples in a part of the page as they stand there, and in psql's help: indented."""
    return "".join(EXAMPLE.findall(part))


def quick(statements: str) -> str:
    """The same calls, for less training."""
    return re.sub(
        r"\bepochs => \d+", "epochs => 1", re.sub(r"\bconfigs => [3-9]", "configs => 2", statements)
    )


def run(url: str, statements: str, folder: Path = ROOT) -> str:
    command = [
        "psql",
        "--no-psqlrc",
        "--no-align",
        "--tuples-only",
        "--set",
        "ON_ERROR_STOP=1",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, input=statements, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_the_examples_of_the_reference_follow_each_other(
    platform: str, database: Database, superuser: Connection
) -> None:
    psql(database, "iris_data.sql")
    with superuser.cursor() as cursor:
        cursor.execute("CREATE ROLE analyst")
        try:
            pages = read_assembly()["read_reference"]()
            superusers = pages.pop(SUPERUSERS)
            if platform == "greenplum":
                pages = {name: text for name, text in pages.items() if name not in REFUSED}
                pages["madlib.md"] = REGISTER.sub("", pages["madlib.md"])
            told = run(database.url, quick(examples("\n".join(pages.values()))))
            by_name = 150 + 3 if platform == "postgresql" else 0
            predicted = re.findall(
                r"^[0-9]+\|(?:setosa|versicolor|virginica)\|[01]\b", told, re.MULTILINE
            )
            assert len(predicted) == 2 * 30 + by_name
            assert "\ncompleted\n" in told
            assert '"same_server": true' in run(database.superuser_url, examples(superusers))
        finally:
            cursor.execute("DROP OWNED BY analyst; DROP ROLE analyst")


OTHER_TOOLS = re.compile(r"## Functions that return nothing\n(.*?)(?=\n## |\Z)", re.DOTALL)
INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)


def test_tools_that_want_a_column_can_call_what_returns_none(database: Database) -> None:
    """What each tool sends of its example, as dbt 1.11 and RPostgreSQL 0.7 do."""
    psql(database, "iris_data.sql")
    (section,) = OTHER_TOOLS.findall((ROOT / "docs" / "how-to" / "other-programs.md").read_text())
    plain, dbt, r, pandas_code = map(dedent, INDENTED.findall(section))
    run(database.url, plain)
    configured, _, model = dbt.partition("}}\n")
    assert "materialized='table'" in configured
    run(database.url, f'create table "public"."iris_ready__dbt_tmp" as (\n{model});')
    run(database.url, re.findall(r'"(.*)"', r, re.DOTALL)[0] + ";")
    engine = get_engine(database.url)
    exec(pandas_code, {"engine": engine, "pandas": pandas})
    engine.dispose()
    packed = "SELECT count(*) FROM iris_for_log, iris_from_dbt, iris_from_r, iris_from_pandas;"
    assert int(run(database.url, packed)) > 0


@pytest.mark.long
def test_the_page_for_madlib_s_users_goes_on_in_python_after_its_tour(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    psql(database, "tour.sql")
    ((code, _),) = blocks(ROOT / "docs" / "tutorials" / "from-madlib.md", database)
    exec(code, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert all("Adam" in line for line in lines)


@pytest.mark.long
@pytest.mark.postgresql("on Greenplum predict_row is not for the rows of tables")
def test_the_page_of_models_by_name_is_a_true_script(database: Database) -> None:
    page = (ROOT / "docs" / "tutorials" / "analyst.md").read_text()
    told = run(database.url, quick("".join(map(dedent, INDENTED.findall(page)))))
    lines = told.splitlines()
    assert "rows|left out|80 rows|their target is NULL" in lines
    assert "column|id|left out|it is of the primary key, and names a row" in lines
    assert "false" in lines or "true" in lines
    versions = [
        version
        for version, deployed, *_ in (f"{line}|".split("|") for line in lines)
        if deployed in ("t", "f")
    ]
    assert sorted(versions)[:2] == ["1", "2"] and "1" in lines
    results = [f"{state}|t|the same bits came out" for state in STATES]
    assert {*results} <= {*lines} and lines[-1] == results[-1]


@pytest.mark.long
@pytest.mark.postgresql("on Greenplum predictions in views have limits of their own")
def test_the_recipes_follow_each_other(database: Database) -> None:
    page = (ROOT / "docs" / "how-to" / "recipes.md").read_text()
    lines = run(database.url, "".join(map(dedent, INDENTED.findall(page)))).splitlines()
    assert "root_mean_squared_error" in "".join(lines)
    assert "balanced_accuracy|t" in lines
    assert {"1|", "1|market", "1|mill", "1|school", "1|station"} <= {*lines}
    assert "2|t" in lines, "the refreshed version predicts"
    assert "completed" in lines
    assert "state|t" in lines


@pytest.mark.long
@pytest.mark.postgresql("on Greenplum cerebro.evaluate stands alone")
def test_the_quick_start_goes_from_a_file_to_predictions(
    database: Database, tmp_path: Path
) -> None:
    lines = [
        f"Passenger {n},{n % 3 + 1},{n * 7 % 80},{n * 37 % 90 + n % 3}.50,{'SCQ'[n % 3]},"
        f"{'yes' if n % 3 == 0 or n * 7 % 80 < 15 else 'no'}\n"
        for n in range(300)
    ]
    text = "name,class,age,fare,embarked,survived\n" + "".join(lines)
    (tmp_path / "passengers.csv").write_text(text)
    blocks_of_page = INDENTED.findall((ROOT / "docs" / "tutorials" / "quickstart.md").read_text())
    statements = "".join(dedent(block) for block in blocks_of_page if "cerebro_db." not in block)
    few = statements.replace(
        "budget => '2 minutes'", "models => '{linear}', configs => 1, epochs => 8, seed => 1"
    )
    assert few != statements
    printed = run(database.url, few, tmp_path).splitlines()
    assert any(line.startswith("column|fare|number") for line in printed)
    assert any(line.startswith("1|linear|accuracy|") for line in printed)
    assert sum(line.split("|")[1:2] in (["yes"], ["no"]) for line in printed) == 5
    assert any(line.startswith("class|") for line in printed), "its importance"
