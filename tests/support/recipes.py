"""Recipes in tests: a session that they are learned in, and what they make of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench import Workbench

from cerebro_plpy.database.queries import escape_percent
from cerebro_plpy.preprocessing.recipe.encoding import encode
from cerebro_plpy.preprocessing.recipe.recipe import Recipe


class Session:
    """As a worker session runs statements: see `cerebro_plpy.database.platform_protocol.Reader`."""

    def __init__(self, bench: Workbench) -> None:
        self._connection = bench.connection

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement, whose placeholders take these values."""
        with self._connection.cursor() as cursor:
            cursor.execute(escape_percent(statement), list(values))
            return list(cursor.fetchall()) if cursor.description else []


def encoded(
    session: Session, recipe: Recipe, source: str, *values: object
) -> tuple[list[list[float]], list[list[int]]]:
    """Numbers and codes of all rows of what stands after FROM."""
    numbers, codes = encode(recipe)
    statement = f"SELECT {numbers.text}, {codes.text} FROM {source} t"
    rows = session.run(statement, (*numbers.values, *codes.values, *values))
    return [row[0] for row in rows], [row[1] for row in rows]
