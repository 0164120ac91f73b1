"""No cell of a CSV file that the client writes is a formula, and its numbers stay numbers."""

from __future__ import annotations

import ast
import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cerebro_db
from cerebro_db.dashboard.optuna import RequestFilter
from cerebro_db.display.csv_files import MARK, NUMBER, rewrite_csv, write_csv

CLIENT = Path(cerebro_db.__file__).parent
# Rows for COPY, which a database reads; and the one for spreadsheets.
WRITERS = {"driver.py", "display/csv_files.py"}
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001

formulas = st.builds(str.__add__, st.sampled_from([*STARTS, " =", "\u00a0@"]), st.text(max_size=9))
numbers = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
)
texts = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
    | formulas
)


def written(header: str, values: list[object]) -> tuple[str, list[str]]:
    """What a spreadsheet reads: the name of the column, and its cells."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_csv(path, ["id", header], [{"id": 1, header: value} for value in values])
        with path.open(newline="", encoding="utf-8") as file:
            (_, name), *cells = csv.reader(file)
    return name, [cell for _, cell in cells]


@given(header=texts, values=st.lists(texts | numbers))
@example(
    header="=cmd|' /C calc'!A1",
    values=["@SUM(A1)", "-2+3", "+1 49", "\t=1", "-5", -5, Decimal("-0.5"), None],
)
def test_no_cell_is_a_formula(header: str, values: list[object]) -> None:
    name, cells = written(header, values)
    for before, cell in zip([header, *values], [name, *cells], strict=True):
        if isinstance(before, str) and not NUMBER.fullmatch(before):
            assert not cell.lstrip().startswith(STARTS) and not cell.startswith(("\t", "\r", "\n"))
            assert before in (cell, cell.removeprefix(MARK))
        else:
            assert cell == ("" if before is None else str(before))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3),
    max_leaves=5,
)


@given(values=st.lists(st.booleans() | st.lists(JSON) | st.dictionaries(texts, JSON), min_size=1))
@example(values=[{"Gentoo penguin's": 7.8e-07, '"b"': 1.0}, True, ["ü", None]])
def test_what_is_no_text_and_no_number_is_json(values: list[object]) -> None:
    """Such as the probabilities of classes."""
    assert [json.loads(cell) for cell in written("probabilities", values)[1]] == values


@given(
    rows=st.lists(
        st.lists(texts | numbers.map(str), min_size=2, max_size=2), min_size=1, max_size=4
    )
)
def test_no_cell_of_a_file_of_others_is_a_formula(rows: list[list[str]]) -> None:
    lines = io.StringIO()
    csv.writer(lines).writerows(rows)
    cells = [
        cell
        for row in csv.reader(io.StringIO(rewrite_csv(lines.getvalue()), newline=""))
        for cell in row
    ]
    for before, cell in zip((cell for row in rows for cell in row), cells, strict=True):
        assert before in (cell, cell.removeprefix(MARK))
        assert NUMBER.fullmatch(cell) or not cell.lstrip().startswith(STARTS)


class Studies:
    """A storage with one study."""

    def get_study_name_from_id(self, study_id: int) -> str:
        return {1: "study"}[study_id]


def test_the_file_of_optunas_dashboard_has_no_formula() -> None:
    def optunas(environ: Any, start_response: Any) -> list[bytes]:
        content = b"Number,=x\r\n-1,@SUM(A1)\r\n"
        start_response(
            "200 OK", [("Content-Type", "text/csv"), ("Content-Length", str(len(content)))]
        )
        return [content]

    def ask(path: str) -> tuple[str, bytes]:
        answers = list[Any]()
        app: Any = RequestFilter(optunas, cast(Any, Studies()))
        body = b"".join(
            app({"PATH_INFO": path, "QUERY_STRING": ""}, lambda *answer: answers.append(answer))
        )
        ((status, headers),) = answers
        assert dict(headers).get("Content-Length", str(len(body))) == str(len(body))
        return status, body

    assert ask("/csv/1") == ("200 OK", b"Number,'=x\r\n-1,'@SUM(A1)\r\n")
    assert ask("/csv/2")[0] == "404 Not Found"


def writes_csv(node: ast.AST) -> bool:
    """Whether a statement imports the library csv, or calls what pandas, polars and numpy write
    such files with.
    """
    if isinstance(node, ast.Import):
        return any(alias.name == "csv" for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module == "csv"
    if not isinstance(node, ast.Call):
        return False
    owner, _, called = ast.unparse(node.func).rpartition(".")
    return called in ("to_csv", "savetxt", "to_excel", "write_excel") or (
        called == "write_csv" and bool(owner)
    )


def modules_that_write_csv() -> set[str]:
    """Modules of the client that do so."""
    paths = [
        path
        for path in CLIENT.rglob("*.py")
        if any(map(writes_csv, ast.walk(ast.parse(path.read_text()))))
    ]
    return {str(path.relative_to(CLIENT)) for path in paths}


def test_one_module_writes_csv_files() -> None:
    assert modules_that_write_csv() == WRITERS


@pytest.mark.parametrize("text", ["-5", "+1.5", "-.5e3", "0"])
def test_a_number_as_text_stays_one(text: str) -> None:
    assert written("n", [text])[1] == [text]
