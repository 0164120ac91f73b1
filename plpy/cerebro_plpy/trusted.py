"""What of a request to a trainer no session may say itself: sources that are executed, and files that are written.

Whoever may train may call the functions on segments by hand, with any request. A request names functions and the table
they are in; the sources are fetched here, where the job begins, and only from a table that none but superusers can
have filled. A trainer takes sources from nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cerebro_plpy import given, object_table
from cerebro_plpy.db import Database
from cerebro_plpy.errors import InsufficientPrivilege, ObjectNotReady, UndefinedTable
from cerebro_plpy.names import check_name, quote_qualified
from cerebro_plpy.queries import sql

CALLBACKS = "callbacks"


def request(db: Database, told: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a session as its trainer may have it."""
    if told.get(CALLBACKS) is not None and not db.value(sql("functions.superuser")):
        raise InsufficientPrivilege(
            "Only a superuser may use callbacks.", hint="They write files as the operating-system user of the server."
        )
    program = told.get("program")
    if not isinstance(program, dict):
        return dict(told)
    return {**told, "program": {**program, "sources": _sources(db, program.get("compile"))}}


def _sources(db: Database, compiled: Any) -> dict[str, str]:
    """The sources of the functions that a program names, by name, as they were when their digests were taken."""
    objects = compiled.get("objects") if isinstance(compiled, dict) else None
    if objects is None:
        return {}
    named = given.kind("objects", objects, dict)
    table = given.kind("table", named.get("table"), str)
    digests = given.kind("digests", named.get("digests"), dict)
    check_name(table)
    for name in digests:
        check_name(name)
    found = _read(db, table, list(digests))
    for name, digest in digests.items():
        if name not in found or hashlib.sha256(found[name]).hexdigest() != digest:
            raise ObjectNotReady(
                f"custom function '{name}' of object table {table} was changed or deleted since the call began",
                hint="Call again.",
            )
    return {name: source.decode() for name, source in found.items()}


def _read(db: Database, table: str, names: list[str]) -> dict[str, bytes]:
    """Looked at before, so that nobody's view is read; and after, when nobody can put another table in its place."""
    before = object_table.trusted(db, table)
    if before is None:
        raise UndefinedTable(f"object table '{table}' does not exist")
    quoted = quote_qualified((before["schema"], table))
    rows = db.rows(sql("functions.sources", table=quoted), names)
    if object_table.trusted(db, table) != before:
        raise ObjectNotReady(f"object table {table} was replaced while it was read", hint="Call again.")
    return {row["name"]: bytes(row["object"]) for row in rows if row["object"] is not None}
