"""A query of the caller's, as a part of statements."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.sql.definition import Definition

COMMENT_START = "--"


class ResultColumn(NamedTuple):
    """A column of the rows of a statement."""

    name: str
    type: int  # oid
    modifier: int


class NamedQuery(NamedTuple):
    """A query that statements of this call can read from."""

    text: str  # without a semicolon
    name: str  # quoted; stands for the query in statements
    columns: tuple[ResultColumn, ...]
    relations: tuple[int, ...] = ()  # oids of what it reads, also behind views; if looked up
    definitions: tuple[Definition, ...] = ()  # that it evaluates, its own among them; if looked up
    objects: tuple[str, ...] = ()  # what it names beside PostgreSQL's own; if looked up
    path: str = ""  # the caller's search_path; if looked up

    @property
    def item(self) -> str:
        """The item of FROM with the text of the query."""
        return quote_query(self.text)


def quote_query(text: str) -> str:
    """Return a query in parentheses, as it stands in FROM.

    >>> quote_query("SELECT 1")
    '(SELECT 1)'
    """
    if COMMENT_START in text:  # which would end at the end of the line
        return f"(\n{text}\n)"
    return f"({text})"
