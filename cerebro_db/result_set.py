"""What a question about runs or tables is answered with: a list of records, which is shown as a
table, and can become a DataFrame.

Neither pandas nor polars is required: each is asked for only when its frame is wanted.
"""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cerebro_db.optional_imports import import_library

if TYPE_CHECKING:
    import pandas
    import polars

R = TypeVar("R")
ROWS = 60
"""So many of the records are shown."""
WIDTH = 120
"""Of a table where the standard output is no terminal."""


class Records(list[R]):
    """Records in the order of the answer: dataclasses of cerebro_db.records, or a dict for a row of
    any table.

    >>> Records([{"id": 1, "prob": 0.5}], ["id", "prob"]).columns
    ('id', 'prob')
    """

    def __init__(self, records: Iterable[R], columns: Iterable[str]) -> None:
        super().__init__(records)
        self.columns = tuple(columns)

    def __repr__(self) -> str:
        """The table as a text."""
        headings, rows = self._shown()
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for number, heading in enumerate(headings):
            table.add_column(
                Text(heading), justify="right" if _numeric(row[number] for row in rows) else "left"
            )
        for row in rows:
            table.add_row(*map(Text, row))
        width = shutil.get_terminal_size((WIDTH, 0)).columns
        console = Console(file=StringIO(), width=width, color_system=None, force_jupyter=False)
        console.print(table)
        lines = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
        return "\n".join([*filter(None, lines), *self._rest()])

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        headings, rows = self._shown()
        head = "".join(f"<th>{html.escape(text)}</th>" for text in headings)
        body = "".join(
            f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
            for row in self.format_html_cells(rows)
        )
        rest = "".join(f"<p>{text}</p>" for text in self._rest())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def format_html_cells(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """What a notebook shows of the cells of the first records."""
        return [[html.escape(cell) for cell in row] for row in rows]

    def format_cells(self, count: int) -> tuple[Sequence[str], list[list[str]]]:
        """The headings of the table, and what is in it of the first so many records."""
        return self.columns, [
            [format_value(get_fields(one)[name]) for name in self.columns]
            for one in islice(self, count)
        ]

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        headings, rows = self.format_cells(ROWS)
        return [escape_controls(heading) for heading in headings], [
            [escape_controls(cell) for cell in row] for row in rows
        ]

    def _rest(self) -> list[str]:
        return [f"… and {len(self) - ROWS} more"] if len(self) > ROWS else []

    def frame(self) -> pandas.DataFrame:
        """The records as rows of a DataFrame of pandas; without records it has the columns all the
        same.
        """
        found: pandas.DataFrame = import_library("pandas", "frames").DataFrame(
            [get_fields(record) for record in self], columns=list(self.columns)
        )
        return found

    def polars(self) -> polars.DataFrame:
        """The records as rows of a DataFrame of polars, with columns of what is in all of them.

        Fields such as `params`, whose keys differ, become JSON.
        """
        frames = import_library("polars", "frames")
        rows = [get_fields(record) for record in self]
        columns = {name: [_flat(row[name]) for row in rows] for name in self.columns}
        found: polars.DataFrame = frames.DataFrame(columns, strict=False)
        return found


def _flat(value: object) -> object:
    return json.dumps(value, default=str) if isinstance(value, Mapping) else value


def format_value(value: object) -> str:
    """A value in a table.

    >>> format_value(0.123456), format_value(None), format_value({"lr": 0.1})
    ('0.1235', '', "{'lr': 0.1}")
    >>> format_value(datetime(2030, 1, 2, 3, 4, 5, 6))
    '2030-01-02 03:04:05'
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value.replace(microsecond=0, tzinfo=None) if isinstance(value, datetime) else value)


def escape_controls(content: str) -> str:
    """A text in which nothing commands a terminal: control characters are written as in Python.

    >>> escape_controls("naïve \\x1b[2J")
    'naïve \\\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in content)


def _numeric(cells: Iterable[str]) -> bool:
    return all(
        not cell or cell.replace(".", "").replace("e-", "").lstrip("-").isdigit() for cell in cells
    )


def get_fields(record: object) -> Mapping[str, Any]:
    """The fields of a record by name."""
    return record if isinstance(record, Mapping) else vars(record)
