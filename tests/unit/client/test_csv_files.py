"""No cell of a CSV file that the client writes is a formula, and its numbers stay numbers."""

from __future__ import annotations

import ast
import csv
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cerebro_db
from cerebro_db.show.csv_files import MARK, NUMBER, write_csv

CLIENT = Path(cerebro_db.__file__).parent
# Rows for COPY, which a database reads; and the one for spreadsheets.
WRITERS = {"driver.py", "show/csv_files.py"}
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001

formulas = st.builds(str.__add__, st.sampled_from([*STARTS, " =", "\u00a0@"]), st.text(max_size=9))
numbers = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9) | formulas


def written(header: str, values: list[object]) -> tuple[str, list[str]]:
    """What a spreadsheet reads: the name of the column, and its cells."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_csv(path, ["id", header], [{"id": 1, header: value} for value in values])
        with path.open(newline="", encoding="utf-8") as file:
            (_, name), *cells = csv.reader(file)
    return name, [cell for _, cell in cells]


@given(header=texts, values=st.lists(texts | numbers))
@example(header="=cmd|' /C calc'!A1", values=["@SUM(A1)", "-2+3", "+1 49", "\t=1", "-5", -5, Decimal("-0.5"), None])
def test_no_cell_is_a_formula(header: str, values: list[object]) -> None:
    name, cells = written(header, values)
    for before, cell in zip([header, *values], [name, *cells], strict=True):
        if isinstance(before, str) and not NUMBER.fullmatch(before):
            assert not cell.lstrip().startswith(STARTS) and not cell.startswith(("\t", "\r", "\n"))
            assert before in (cell, cell.removeprefix(MARK))
        else:
            assert cell == ("" if before is None else str(before))


def modules_that_write_csv() -> set[str]:
    """Modules of the client that use the library csv, or what pandas and polars write such files with."""
    found = set[str]()
    for path in CLIENT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imports = isinstance(node, ast.Import) and any(alias.name == "csv" for alias in node.names)
            imports |= isinstance(node, ast.ImportFrom) and node.module == "csv"
            called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
            if (
                imports
                or called in ("to_csv", "savetxt", "to_excel", "write_excel")
                or (called == "write_csv" and "." in ast.unparse(node.func))
            ):
                found.add(str(path.relative_to(CLIENT)))
    return found


def test_one_module_writes_csv_files() -> None:
    assert modules_that_write_csv() == WRITERS


@pytest.mark.parametrize("text", ["-5", "+1.5", "-.5e3", "0"])
def test_a_number_as_text_stays_one(text: str) -> None:
    assert written("n", [text])[1] == [text]
