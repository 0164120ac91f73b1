"""Write rows as a CSV file that a spreadsheet shows and does not execute."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")  # noqa: RUF001
"""Begin of a cell that spreadsheets take for a formula; some of them also the wide characters of
East Asia.
"""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
MARK = "'"
"""Put before such a cell: spreadsheets then take it for text."""


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a new file with a line for the columns and one for each row; names and classes may be a
    stranger's.
    """
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([make_cell(column) for column in columns])
        writer.writerows([make_cell(row[column]) for column in columns] for row in rows)


def rewrite_csv(text: str) -> str:
    """Return the text of a CSV file that somebody else has written, without formulas."""
    lines = io.StringIO()
    csv.writer(lines).writerows(
        [make_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""))
    )
    return lines.getvalue()


def make_cell(value: object) -> object:
    """Return the value of a cell; a text that would be a formula gets a mark before it.

    >>> make_cell("=1+1"), make_cell("-5"), make_cell(-5.5), make_cell("a=b"), make_cell(None)
    ("'=1+1", '-5', -5.5, 'a=b', None)
    """
    if value is None or isinstance(value, (int, float, Decimal)):
        return value
    text = str(value)
    if FORMULA.match(text) and not NUMBER.fullmatch(text):
        return MARK + text
    return text
