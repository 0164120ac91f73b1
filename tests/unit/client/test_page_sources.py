"""Each table that functions of the product create for a user is recognised by its columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cerebro_db.dashboard.sources import OWN_COLUMNS

QUERIES = Path(__file__).parents[3] / "plpy" / "cerebro_plpy" / "database" / "queries"
CREATE = re.compile(
    r"^CREATE TABLE \{(?:output|table|summary)\} \((.*?)\)\s*(?:;|$|\n\{distributed)", re.M | re.S
)
EXAMPLES = {("example.sql", "id integer PRIMARY KEY")}
"""Tables to learn from, by their files and their first columns."""


def list_tables() -> list[tuple[str, str]]:
    """Return the file and the columns of each table that is created with a list of columns.

    A copy of packed rows has their columns.
    """
    tables: list[tuple[str, str]] = []
    for path in sorted(QUERIES.glob("*.sql")):
        for match in CREATE.finditer(path.read_text()):
            if match[1].startswith("LIKE "):
                continue
            tables.append((path.name, " ".join(match[1].split())))
    return tables


TABLES = list_tables()


def has_column(columns: str, column: str) -> bool:
    """Return True if a list of columns has one of this name, and of this type if it is named."""
    name, _, kind = column.partition(" ")
    match = re.search(rf"(?:^|, ){re.escape(name)} (\w+(?: precision)?(?:\[\])?)", columns)
    return match is not None and kind in ("", match[1])


@pytest.mark.parametrize(("file", "columns"), TABLES, ids=[f"{f}-{c[:25]}" for f, c in TABLES])
def test_own_tables_are_recognised(file: str, columns: str) -> None:
    kinds = [
        kind
        for kind, own in OWN_COLUMNS.items()
        if all(has_column(columns, column) for column in own)
    ]
    is_example = any(file == name and columns.startswith(first) for name, first in EXAMPLES)
    assert bool(kinds) != is_example


def test_the_tables_are_found() -> None:
    assert len(TABLES) >= 14
