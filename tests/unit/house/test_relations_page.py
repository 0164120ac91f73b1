"""docs/reference/sql/runs.md lists each view that users read, with all of its columns."""

from __future__ import annotations

import re
from pathlib import Path

from sources import sql_files

ROOT = Path(__file__).parents[3]
OBJECTS = (ROOT / "tests" / "upgrade" / "objects.txt").read_text()
PAGE = (ROOT / "docs" / "reference" / "sql" / "runs.md").read_text()
COLUMN = re.compile(r"^cerebro\.(\w+) column \d+ (\w+) ", re.MULTILINE)
COMMENT = re.compile(r"COMMENT ON (?:VIEW|TABLE) cerebro\.(\w+) IS\s+'(.*?)'", re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \| (.*)$", re.MULTILINE)
SAME_COLUMNS = {"learning_curve": "metric"}


def list_columns() -> dict[str, set[str]]:
    columns: dict[str, set[str]] = {}
    for relation, column in COLUMN.findall(OBJECTS):
        columns.setdefault(relation, set()).add(column)
    return columns


def list_internal() -> set[str]:
    comments = COMMENT.findall("\n".join(sql_files().values()))
    return {name for name, comment in comments if "nternal" in comment}


def list_rows() -> dict[str, str]:
    chapter = PAGE.partition("\n## Views\n")[2].partition("\n### ")[0]
    return dict(ROW.findall(chapter))


def test_each_view_is_on_the_page_with_its_columns() -> None:
    rows = list_rows()
    columns = list_columns()
    assert len(rows) > 15, "this test finds nothing any more"
    assert {*rows} <= {*columns}
    for relation in rows:
        named = {*re.findall(r"\w+", rows[SAME_COLUMNS.get(relation, relation)])}
        assert columns[relation] <= named, f"{relation}: {columns[relation] - named}"


def test_no_view_is_missing_on_the_page() -> None:
    views = set(re.findall(r"^view cerebro\.(\w+)", OBJECTS, re.MULTILINE))
    assert views - list_internal() <= {*list_rows()}
