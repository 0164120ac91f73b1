"""Results of queries about runs and tables: lists of records that display as tables.

They convert to DataFrames. Neither pandas nor polars is required; each is imported only when its
frame is requested.
"""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from io import StringIO
from itertools import islice
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cerebro_db.optional_imports import import_library

if TYPE_CHECKING:
    import pandas
    import polars

R = TypeVar("R")
Rows: TypeAlias = "Records[dict[str, Any]]"
"""Rows of a table or of a function, by column."""
MAX_ROWS = 60
"""Largest number of records that a table shows."""
MAX_TEXT_WIDTH = 30
"""Width from which on a text is folded if the table is too wide for the terminal."""
SPACE = 2
"""Letters between two columns."""
DEFAULT_WIDTH = 120
"""Width of a table if the standard output is not a terminal."""


class Records(list[R]):
    """Records in the order of the query: dataclasses of cerebro_db.records, or a dict per row.

    >>> Records([{"id": 1, "prob": 0.5}], ["id", "prob"]).columns
    ('id', 'prob')
    """

    def __init__(
        self, records: Iterable[R], columns: Iterable[str], *, optional: Sequence[str] = ()
    ) -> None:
        """Create the list.

        Args:
            columns: names of the columns.
            optional: headings that a narrow terminal lacks, the first to be left out first.
        """
        super().__init__(records)
        self.columns = tuple(columns)
        self._optional = tuple(optional)

    def __repr__(self) -> str:
        """Return the table as text, in the width of the terminal."""
        headings, rows = self._escape_cells()
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        numbers = choose_columns(headings, rows, self._optional, width)
        for number in numbers:
            is_number = all(_is_number(row[number]) for row in rows)
            table.add_column(
                Text(headings[number]),
                justify="right" if is_number else "left",
                overflow="fold",
                no_wrap=is_number and " " not in headings[number],
            )
        for row in rows:
            table.add_row(*(Text(row[number]) for number in numbers))
        output = StringIO()
        Console(file=output, width=width, color_system=None, force_jupyter=False).print(table)
        lines = [line.rstrip() for line in output.getvalue().splitlines()]
        footer = [wrapped for line in self.format_footer() for wrapped in wrap(line, width)]
        return "\n".join([*filter(None, lines), *footer])

    def _repr_html_(self) -> str:
        """Return the table as HTML, for a notebook."""
        headings, rows = self._escape_cells()
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
        body = "".join(
            f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
            for row in self.format_html_cells(headings, rows)
        )
        footer = "".join(f"<p>{html.escape(line)}</p>" for line in self.format_footer())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{footer}"

    def format_html_cells(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> list[list[str]]:
        """Return the cells of the first records as HTML."""
        return [[html.escape(cell) for cell in row] for row in rows]

    def format_cells(self, count: int) -> tuple[Sequence[str], list[list[str]]]:
        """Return the headings of the table, and the cells of the first `count` records."""
        rows = [
            [format_value(get_fields(record)[name]) for name in self.columns]
            for record in islice(self, count)
        ]
        return self.columns, rows

    def _escape_cells(self) -> tuple[list[str], list[list[str]]]:
        headings, rows = self.format_cells(MAX_ROWS)
        escaped_rows = [[escape_controls(cell) for cell in row] for row in rows]
        return [escape_controls(heading) for heading in headings], escaped_rows

    def format_footer(self) -> list[str]:
        """Return the lines below the table."""
        if len(self) <= MAX_ROWS:
            return []
        return [f"… and {len(self) - MAX_ROWS} more"]

    def frame(self) -> pandas.DataFrame:
        """Return the records as a DataFrame of pandas, which has the columns even without rows."""
        rows = [get_fields(record) for record in self]
        frame: pandas.DataFrame = import_library("pandas", "frames").DataFrame(
            rows, columns=list(self.columns)
        )
        return frame

    def polars(self) -> polars.DataFrame:
        """Return the records as a DataFrame of polars.

        Mappings such as `params`, whose keys differ between records, become JSON.
        """
        rows = [get_fields(record) for record in self]
        columns = {name: [_encode_mapping(row[name]) for row in rows] for name in self.columns}
        frame: polars.DataFrame = import_library("polars", "frames").DataFrame(
            columns, strict=False
        )
        return frame


def choose_columns(
    headings: Sequence[str], rows: Iterable[Sequence[str]], optional: Iterable[str], width: int
) -> list[int]:
    """Return the numbers of the columns that fit; optional ones are left out one after another.

    A long text is folded, so that it counts as MAX_TEXT_WIDTH letters, and a heading at its blanks.

    >>> choose_columns(["id", "note"], [["1", "long"]], ["note"], 8)
    [0, 1]
    >>> choose_columns(["id", "note"], [["1", "long"]], ["note"], 7)
    [0]
    """
    table = list(rows)
    sizes = {}
    for number, heading in enumerate(headings):
        texts = heading.split()
        for row in table:
            texts.append(row[number])
        longest = max(map(len, texts), default=0)
        sizes[number] = min(longest, MAX_TEXT_WIDTH) + SPACE
    for heading in optional:
        if sum(sizes.values()) - SPACE <= width:
            break
        if heading in headings:
            sizes.pop(headings.index(heading), None)
    return list(sizes)


def name_columns(rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> Rows:
    """Return the rows of a function as records: dicts keyed by the columns."""
    return Records([dict(zip(columns, row, strict=True)) for row in rows], columns)


def _encode_mapping(value: object) -> object:
    if isinstance(value, Mapping):
        return json.dumps(value, default=str)
    return value


def format_value(value: object) -> str:
    """Return the text of a value in a table.

    >>> format_value(0.123456), format_value(None), format_value({"lr": 0.1})
    ('0.1235', '', 'lr=0.1')
    >>> format_value(datetime(2030, 1, 2, 3, 4, 5, 6))
    '2030-01-02 03:04:05'
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={format_value(item)}" for name, item in value.items())
    if isinstance(value, datetime):
        return str(value.replace(microsecond=0, tzinfo=None))
    return str(value)


def escape_controls(content: str) -> str:
    """Escape control characters as Python does, so that a text sends no commands to a terminal.

    >>> escape_controls("naïve \\x1b[2J")
    'naïve \\\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in content)


def _is_number(cell: str) -> bool:
    """Return whether a cell is empty or contains a number."""
    return not cell or cell.replace(".", "").replace("e-", "").lstrip("-").isdigit()


def get_fields(record: object) -> Mapping[str, Any]:
    """Return the fields of a record by name."""
    if isinstance(record, Mapping):
        return record
    return vars(record)
