"""A query of the caller's in the place of a table: one SELECT, whose rows are read once.

Nothing is created for it: the statement that reads the rows has the query as an item of FROM. There
PostgreSQL takes a single query that only reads. It resolves names as a SELECT of the caller does,
but for the operators and functions of pg_catalog, which come first.
"""

from __future__ import annotations

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import SettingValues
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.named_query import NamedQuery, ResultColumn
from cerebro_plpy.errors import DuplicateColumn, InvalidParameter, NullNotAllowed

SPELLING = "the query"
"""What messages call a query."""
SHOWN_CHARACTERS = 60


def check_source_arguments(module: str, source: str | None, query: str | None) -> None:
    """Refuse a call that names both a table and a query, or an empty query."""
    if query is None:
        return
    if source is not None:
        raise InvalidParameter(
            f"{module} error: source is {source!r:.{SHOWN_CHARACTERS}}, and query is "
            f"{query!r:.{SHOWN_CHARACTERS}}; expected one of the two.",
            hint="Leave source out, or leave out query.",
        )
    if not query.strip():
        raise NullNotAllowed(
            f"{module} error: query is empty.", hint="Write a query that returns the rows."
        )


def name_query(
    db: Database, module: str, query: str, settings: SettingValues, *, is_volatile: bool = False
) -> NamedQuery:
    """Check a query, and name it for the statements of this call.

    Args:
        settings: the settings under which its rows will be read.
        is_volatile: the function that was called may write, so that another one opens the query.

    Raises:
        InvalidParameter: the text is not a single query that only reads.
        DuplicateColumn: columns have the same name.
    """
    text = query.strip().rstrip(";").rstrip()
    with db.configured(**settings):
        db.check_statement(text)
        name = db.name_query(text)
        if is_volatile:
            columns, error = _describe_apart(db, text)
        else:
            columns, error = db.describe_query(sql("reading.described", source=name))
    if error is not None:
        raise InvalidParameter(
            f"{module} error: query is {query!r:.{SHOWN_CHARACTERS}}; expected one query that only "
            "reads.",
            detail=error,
            hint="Write one SELECT, VALUES, TABLE or WITH, which changes and locks nothing.",
        )
    names: set[str] = set()
    for column in columns:
        if column.name in names:
            quoted = quote_identifier(column.name)
            raise DuplicateColumn(
                f"{module} error: {SPELLING} returns several columns {quoted}; expected one of "
                "each name.",
                hint="Give one of them another name with AS, or leave it out of the query.",
            )
        names.add(column.name)
    return NamedQuery(text, name, columns)


def _describe_apart(db: Database, text: str) -> tuple[tuple[ResultColumn, ...], str | None]:
    """Return the columns of a query that a function opens which may not write, or its error."""
    rows = db.rows(sql("reading.query_columns"), text)
    errors = [row["error"] for row in rows if row["error"] is not None]
    if errors:
        return (), errors[0]
    return tuple(ResultColumn(row["name"], row["type"], row["modifier"]) for row in rows), None


def make_relation(query: NamedQuery) -> Relation:
    """Return a query as the source of a call."""
    return Relation(spelling=SPELLING, schema="", name="", oid=0, quoted=query.item, query=query)
