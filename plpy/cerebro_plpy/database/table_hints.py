"""Hints about a name that no table has: the text to write instead, or what the name belongs to."""

from __future__ import annotations

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import Names, quote_qualified
from cerebro_plpy.database.sql.spelling import read_loosely, spell_name
from cerebro_plpy.database.sql.view_hints import read_as_query, suggest_query_view
from cerebro_plpy.errors import quote_text

VIEW = "source_view"
SIMILARITY = 0.75
"""Of names that a hint guesses, by difflib; among many tables others are similar by chance."""
SPLIT = "split"
KINDS = {"S": "a sequence", "i": "an index", "I": "an index", "c": "a type", "t": "a TOAST table"}
"""Relations that have no rows to read, by relkind of pg_class."""


def suggest_table(db: Database, parts: Names, argument: str | None) -> str:
    """Return a hint with the text to write for a table that does not exist.

    Args:
        parts: the name as it was read.
        argument: the argument that names the table; None if callers pass it by position.
    """
    spelled = _find_spelling(db, parts)
    if spelled is not None:
        return _write(argument, spelled)
    similar = _find_similar(db, parts[-1])
    if similar:
        return f"Did you mean {' or '.join(similar)}?"
    return "Check the spelling and the search_path, or write schema.table."


def suggest_source(
    db: Database, text: str, argument: str | None, query_arguments: str | None = None
) -> str | None:
    """Return a hint for a text that cannot be read as a name; None without a better idea.

    A table may have exactly this name, which then needs double quotes; or the text is a query.

    Args:
        query_arguments: what follows the argument `query`, which the function has in place of this
            one; None if it has no such argument.
    """
    name = text.strip()
    loose = read_loosely(name)
    names = [name]
    if len(loose) == 1:
        names.append(loose[0])
    for candidate in names:
        spelled = _find_spelling(db, (candidate,))
        if spelled is not None:
            return _write(argument, spelled)
    query = read_as_query(text)
    if query is None:
        return None
    if query_arguments is not None:
        return f"Leave {argument} out, and write query => {quote_text(query)}{query_arguments}."
    return suggest_query_view(argument or "the table", choose_view(db), query)


def describe_other_kind(kind: str) -> str:
    """Return the words for a relation that is neither a table nor a view."""
    return KINDS.get(kind, "no table or view")


def suggest_table_of(db: Database, oid: int, argument: str | None) -> str:
    """Return a hint with the table that an index or a sequence belongs to."""
    for row in db.rows(sql("read.table_of"), oid, oid):
        return _write(argument, f"{spell_name(row['schema'])}.{spell_name(row['name'])}")
    return "Name a table or view."


def _write(argument: str | None, spelled: str) -> str:
    if argument is None:
        return f"Write {quote_text(spelled)}."
    if argument == SPLIT:
        spelled = f"table {spelled}"
    return f"Write {argument} => {quote_text(spelled)}."


def choose_view(db: Database) -> str:
    """Return a name for a view that no relation has that the caller sees."""
    name = VIEW
    number = 1
    while _look_up(db, name) is not None:
        number += 1
        name = f"{VIEW}_{number}"
    return name


def _look_up(db: Database, name: str) -> object:
    return db.value_in_caller_path(sql("read.resolve"), quote_qualified((name,)))


def _find_spelling(db: Database, parts: Names) -> str | None:
    """Return how to write the readable table whose name differs in case or in its schema only."""
    schema = None
    if len(parts) == 2:
        schema = parts[0]
    rows: list[Row] = db.rows(
        sql("read.tables_named"), _read_path(db), parts[-1], schema, schema, parts[-1]
    )
    for row in rows:
        name = spell_name(row["name"])
        if row["is_visible"] and schema is None:
            return name
        return f"{spell_name(row['schema'])}.{name}"
    return None


def _find_similar(db: Database, name: str) -> list[str]:
    import difflib  # of no use to a call that goes well

    names = [row["name"] for row in db.rows(sql("read.tables_in"), _read_path(db))]
    by_folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=SIMILARITY)
    return [spell_name(by_folded[match]) for match in close]


def _read_path(db: Database) -> list[str]:
    """Return the schemas that the caller's names are looked up in."""
    return list(db.value_in_caller_path(sql("read.path")))
