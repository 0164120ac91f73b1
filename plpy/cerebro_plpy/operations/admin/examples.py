"""`cerebro.load_example`: create a table of example data, so that a first call has rows to read."""

from __future__ import annotations

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import InvalidParameter

MODULE = "load_example"
TARGETS = {"flowers": "species"}
"""The column to predict, by example."""


def load(db: Database, name: str | None, output: str | None) -> str:
    """Create the table of an example; return its quoted name.

    Raises:
        InvalidParameter: there is no such example.
        DuplicateTable: the table exists.
    """
    example = "flowers" if name is None else name
    if example not in TARGETS:
        raise InvalidParameter(
            f"{MODULE} error: name is {example!r:.100}; expected one of "
            f"{', '.join(map(repr, TARGETS))}.",
            hint="SELECT cerebro.load_example('flowers');",
        )
    table = Catalog(db, MODULE).reserve_output(example if output is None else output)
    db.rows(sql(f"example.{example}_table", output=table.quoted))
    db.rows(sql(f"example.{example}_rows", output=table.quoted))
    return table.quoted
