"""The queries of the page about dashboards, and those of the dashboard for Grafana, answer over a
real run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from roles import another_role, session_of
from workbench import Workbench, compile_text

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "how-to" / "other-dashboards.md").read_text()
BOARD = json.loads((DOCS / "examples" / "grafana" / "runs.json").read_text())
PANELS = {panel["title"]: panel for panel in BOARD["panels"]}
QUERIES = [
    query
    for query in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    if query.startswith("SELECT")
]
ROLE = next(
    text
    for text in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    if text.startswith("CREATE ROLE")
)
FILTER = re.compile(r"\$__timeFilter\(([\w.]+)\)")


@pytest.fixture(scope="module")
def run(bench: Workbench) -> int:
    bench.pack("packed", 2)
    bench.configure("configs", [compile_text(f"SGD(learning_rate={rate})") for rate in (0.01, 0.1)])
    named = {"search": "asha", "metrics_compute_frequency": 1, "workers": 1}
    return bench.fit("packed", "outputs", "configs", 3, **named)


@pytest.fixture(scope="module")
def watcher(bench: Workbench, shared_superuser: Workbench, run: int) -> Iterator[Workbench]:
    """A session of the role that the page makes, for whoever has trained here."""
    owner = bench.value("SELECT current_user::text")
    with another_role(bench, shared_superuser, "watcher", granted=False):
        for statement in ROLE.replace(" ann ", f' "{owner}" ').strip().splitlines()[1:]:
            shared_superuser.rows(statement)
        with closing(session_of(bench, "watcher")) as session:
            yield session


def answer(watcher: Workbench, query: str, run: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What Grafana would get: it replaces macros and variables by texts before it asks."""
    text = FILTER.sub(r"\1 BETWEEN '2000-01-01T00:00:00Z' AND '2100-01-01T00:00:00Z'", query)
    for name, value in (("run", str(run)), ("metric", "loss"), ("dataset", "training")):
        text = text.replace(f"${name}", value)
    assert "$" not in text
    with watcher.connection.cursor() as cursor:
        cursor.execute(text)
        assert cursor.description is not None
        return [column.name for column in cursor.description], list(cursor.fetchall())


@pytest.mark.parametrize("title", PANELS)
def test_panels_show_something(watcher: Workbench, run: int, title: str) -> None:
    (target,) = PANELS[title]["targets"]
    columns, rows = answer(watcher, target["rawSql"], run)
    assert rows
    if target["format"] == "time_series":
        assert columns == ["time", "metric", "value"]
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_variables_have_values(watcher: Workbench, run: int) -> None:
    for variable in BOARD["templating"]["list"]:
        columns, rows = answer(watcher, variable["query"], run)
        assert rows and columns in (["name"], ["dataset"], ["__text", "__value"])


def test_panels_lie_side_by_side() -> None:
    """Each has a number and room of its own, in the 24 columns that Grafana has."""
    places = [panel["gridPos"] for panel in BOARD["panels"]]
    squares = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(squares) == len(set(squares)) and max(x for x, _ in squares) < 24
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_queries_of_the_page_answer(watcher: Workbench, run: int, query: str) -> None:
    _, rows = answer(watcher, query, run)
    assert rows or "model_version" in query
