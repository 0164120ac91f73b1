"""What of a request to a trainer no session may say itself: sources that are executed, and files
that are written.

Whoever may train may call the functions on segments by hand, with any request. A request names
functions and the table they are in; the sources are fetched here, where the job begins, and only
from a table that none but superusers can have filled. A trainer takes sources from nowhere else.

Sealed are jobs on weights that the session must not see: who was granted predictions of a model is
given no more. Their owner's function of the model begins the job and fills it; what the session may
ask of it is said here, and the trainer keeps to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import check_name, quote_qualified
from cerebro_plpy.errors import (
    InsufficientPrivilege,
    InvalidParameter,
    ObjectNotReady,
    UndefinedTable,
)
from cerebro_plpy.trainer_client import argument_checks

CALLBACKS = "callbacks"
SEALED_KINDS = ("evaluate", "predict")


def with_sources(db: Database, told: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a session as its trainer may have it."""
    if told.get(CALLBACKS) is not None and not db.value(sql("functions.superuser")):
        raise InsufficientPrivilege(
            "Only a superuser may use callbacks.",
            hint="They write files as the operating-system user of the server.",
        )
    program = told.get("program")
    if not isinstance(program, dict):
        return dict(told)
    return {**told, "program": {**program, "sources": _sources(db, program.get("compile"))}}


def _sources(db: Database, compiled: Any) -> dict[str, str]:
    """The sources of the functions that a program names, by name, as they were when their digests
    were taken.
    """
    objects = compiled.get("objects") if isinstance(compiled, dict) else None
    if objects is None:
        return {}
    named = argument_checks.kind("objects", objects, dict)
    table = argument_checks.kind("table", named.get("table"), str)
    digests = argument_checks.kind("digests", named.get("digests"), dict)
    check_name(table)
    for name in digests:
        check_name(name)
    found = _read(db, table, list(digests))
    for name, digest in digests.items():
        if name not in found or hashlib.sha256(found[name]).hexdigest() != digest:
            raise ObjectNotReady(
                f"custom function '{name}' of object table {table} was changed or deleted since "
                "the call began",
                hint="Call again.",
            )
    return {name: source.decode() for name, source in found.items()}


def _read(db: Database, table: str, names: list[str]) -> dict[str, bytes]:
    """Looked at before, so that nobody's view is read; and after, when nobody can put another table
    in its place.
    """
    before = trusted_table(db, table)
    if before is None:
        raise UndefinedTable(f"object table '{table}' does not exist")
    quoted = quote_qualified((before["schema"], table))
    rows = db.rows(sql("functions.sources", table=quoted), names)
    if trusted_table(db, table) != before:
        raise ObjectNotReady(
            f"object table {table} was replaced while it was read", hint="Call again."
        )
    return {row["name"]: bytes(row["object"]) for row in rows if row["object"] is not None}


def trusted_table(db: Database, name: str) -> Row | None:
    """The object table of that name, None where there is none; raises where others than superusers
    can write to it.
    """
    rows = db.rows(sql("functions.table"), name)
    if rows and not (rows[0]["trusted"] and rows[0]["ordinary"]):
        raise InsufficientPrivilege(
            "DL: Cannot use a table of a non-superuser as object table.",
            detail=f"What it holds would be executed as the server's user; {name} is "
            + (
                "no ordinary table."
                if rows[0]["trusted"]
                else "owned by a role that is no superuser."
            ),
            hint="A superuser makes one by load_custom_function().",
        )
    if rows and rows[0]["open"]:
        raise InsufficientPrivilege(
            f"DL: Cannot use object table {name}: roles that are no superusers may write to it.",
            hint=f"REVOKE INSERT, UPDATE, TRIGGER ON {quote_qualified((rows[0]['schema'], name))} "
            "FROM those roles.",
        )
    return rows[0] if rows else None


def sealed_request(asked: dict[str, Any], architecture: dict[str, Any]) -> dict[str, Any]:
    """The job that was asked for, on a whole state and on the architecture that it belongs to.

    With another architecture, such as one that puts the weights out as they are, a prediction would
    tell them.
    """
    if asked.get("job") not in SEALED_KINDS or not isinstance(asked.get("program"), dict):
        raise InvalidParameter(
            f"received job {str(asked.get('job'))[:80]!r}; expected one of "
            f"{', '.join(SEALED_KINDS)}"
        )
    return {
        "job": asked["job"],
        "datasets": asked.get("datasets"),
        "result_key": asked.get("result_key"),
        "program": {**asked["program"], "architecture": architecture},
        "state": {"source": "weights_of_chunks", "key": "", "seed": 0},
    }
