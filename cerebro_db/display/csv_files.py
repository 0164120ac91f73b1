"""Write CSV files in which spreadsheets find no formulas."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")  # noqa: RUF001
"""Start of a cell that a spreadsheet reads as a formula, for some with full-width characters."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
MARK = "'"
"""Prefix of such a cell, with which spreadsheets read it as text."""


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a new file with a line for the columns and one for each row.

    The names of columns and the texts of cells may be a stranger's.
    """
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([make_cell(column) for column in columns])
        writer.writerows([make_cell(row[column]) for column in columns] for row in rows)


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return the text of a CSV file, as `write_csv` writes it."""
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow([make_cell(column) for column in columns])
    writer.writerows([make_cell(row[column]) for column in columns] for row in rows)
    return output.getvalue()


def rewrite_csv(text: str) -> str:
    """Return the text of another program's CSV file without formulas."""
    output = io.StringIO()
    rows = csv.reader(io.StringIO(text, newline=""))
    csv.writer(output).writerows([make_cell(cell) for cell in row] for row in rows)
    return output.getvalue()


def make_cell(value: object) -> object:
    """Return the content of a cell; text that would be a formula is marked.

    Booleans, lists and mappings are written as JSON.

    >>> make_cell("=1+1"), make_cell("-5"), make_cell(-5.5), make_cell("a=b"), make_cell(None)
    ("'=1+1", '-5', -5.5, 'a=b', None)
    """
    if isinstance(value, (bool, list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    if value is None or isinstance(value, (int, float, Decimal)):
        return value
    text = str(value)
    if FORMULA.match(text) and not NUMBER.fullmatch(text):
        return MARK + text
    return text
