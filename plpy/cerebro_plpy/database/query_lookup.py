"""A query in the place of a table, before a call that writes reads it.

The caller's session describes the query. If another session is to read it, a view of it is made for
a moment, from which the catalog tells what the query reads. All of that is undone at once, with its
locks: a source may be altered or dropped while a run is under way.
"""

from __future__ import annotations

import secrets

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.definitions import read_definitions, relations_query
from cerebro_plpy.database.lock_waits import WaitLimit
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import Reading, SettingValues
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.sql_errors import read_sqlstate
from cerebro_plpy.database.source_query import SPELLING, make_relation, name_query
from cerebro_plpy.database.sql.definition import Definition
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.database.sql.named_query import NamedQuery
from cerebro_plpy.database.table_visibility import REASON
from cerebro_plpy.errors import (
    LOCK_NOT_AVAILABLE,
    ActiveTransaction,
    DatatypeMismatch,
    LockNotAvailable,
)
from cerebro_plpy.records import dataclass, replace

SCHEMA = "cerebro_state"
INVALID_TABLE = "42P16"
"""SQLSTATE of a view in a schema that reads a temporary table."""


@dataclass(frozen=True)
class QueryLookup:
    """The circumstances under which a call looks at a query."""

    module: str  # the function that was called
    reading: Reading  # under which the rows will be read
    limit: WaitLimit  # for a lock of another session on a table of the query
    is_read_apart: bool  # another session reads the rows

    @property
    def settings(self) -> SettingValues:
        """The settings of the statements that look at the query."""
        # As in a SELECT, so that a temporary table is not taken for another one of its name.
        reading = replace(self.reading, temporary_first=True)
        return {
            **reading.settings,
            "lock_timeout": self.limit.setting,
            "client_min_messages": "error",
        }


def look_up_query(db: Database, query: str, lookup: QueryLookup) -> Relation:
    """Return a query as the source of a call; no lock of it remains.

    Raises:
        InvalidParameter, DuplicateColumn: see `name_query`.
        DatatypeMismatch: a column has a type that no table can have.
        ActiveTransaction: another session is to read a temporary table.
        LockNotAvailable: another session has locked a table of the query for too long.
    """
    return make_relation(db.undone(lambda: _describe(db, query, lookup)))


def _describe(db: Database, query: str, lookup: QueryLookup) -> NamedQuery:
    """Return the description of a query, within a subtransaction that is undone."""
    queries: list[NamedQuery] = []
    error = db.find_error(
        lambda: queries.append(
            name_query(db, lookup.module, query, lookup.settings, is_volatile=True)
        )
    )
    if error is not None:
        if read_sqlstate(error) == LOCK_NOT_AVAILABLE:
            raise _locked_error(lookup) from error
        raise error
    (description,) = queries
    _check_types(db, description, lookup.module)
    if not lookup.is_read_apart:
        return description
    return _find_references(db, description, lookup)


def _locked_error(lookup: QueryLookup) -> LockNotAvailable:
    waited = f" for longer than {lookup.limit.seconds:.3g} s" if lookup.limit.seconds else ""
    return LockNotAvailable(
        f"{lookup.module} error: another session has locked a table of {SPELLING}{waited}.",
        hint="Call again when that session has ended its transaction, or SET lock_timeout to wait "
        "longer.",
    )


def _check_types(db: Database, query: NamedQuery, module: str) -> None:
    """Refuse a query with a column that no table can have, such as a row of unknown columns."""
    types = [column.type for column in query.columns]
    names = [column.name for column in query.columns]
    for row in db.rows(sql("reading.pseudo_types"), names, types):
        quoted = quote_identifier(row["name"])
        raise DatatypeMismatch(
            f"{module} error: column {quoted} of {SPELLING} has type {row['type']}, which no table "
            "can have.",
            hint="Leave the column out of the query, or cast it to text.",
        )


def _find_references(db: Database, query: NamedQuery, lookup: QueryLookup) -> NamedQuery:
    """Return a query with what it reads, as the catalog has it of a view."""
    view = f"query_{secrets.token_hex(8)}"
    qualified = f"{SCHEMA}.{view}"
    with db.configured(**lookup.settings):
        error = db.find_error(
            lambda: db.rows(sql("reading.view", view=qualified, query=query.name))
        )
    if error is not None:
        if read_sqlstate(error) == INVALID_TABLE:
            raise ActiveTransaction(
                f"{lookup.module} error: other sessions cannot use a table of {SPELLING}: it is "
                f"{REASON}.",
                hint="Copy the temporary table into one that is not, and write that name into the "
                "query.",
            ) from error
        raise error
    oid = db.value(sql("reading.oid", literal=literal(qualified)))
    relations = {row["oid"] for row in db.rows(relations_query(), [oid])}
    definitions = [
        _rename(definition, f"view {qualified}") for definition in read_definitions(db, [oid])
    ]
    objects = [row["name"] for row in db.rows(sql("reading.objects"), oid, oid)]
    return query._replace(
        relations=tuple(sorted(relations - {oid})),
        definitions=tuple(definitions),
        objects=tuple(objects),
        path=lookup.reading.path,
    )


def _rename(definition: Definition, view: str) -> Definition:
    """Return a definition with the name of the query in place of the view's."""
    name = SPELLING if definition.name == view else definition.name
    user_name = SPELLING if definition.user_name == view else definition.user_name
    return replace(definition, name=name, user_name=user_name)
