"""Parts of a request to a trainer that a session must not choose: executed sources, written files.

A role that may train may call the functions on segments directly, with any request. A request names
functions and their table. The sources are read here, when the job begins, and only from a table
that nobody but superusers can have filled. A trainer accepts no other sources.

A sealed job uses weights that the session must not see: a grant of predictions with a model
includes nothing else. The model's function of its owner begins the job and sends the weights. The
requests that the session may then make are limited here and in the trainer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import check_name, quote_qualified
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import (
    InsufficientPrivilege,
    InvalidParameter,
    ObjectNotReady,
    UndefinedTable,
)
from cerebro_plpy.trainer_client import argument_checks

CALLBACKS = "callbacks"
SEALED_KINDS = ("evaluate", "predict")


def add_sources(db: Database, request: Mapping[str, Any]) -> JsonObject:
    """Return a session's request with the sources of the functions that it names.

    Raises:
        InsufficientPrivilege: the request has callbacks, and the role is not a superuser.
    """
    if request.get(CALLBACKS) is not None and not db.value(sql("functions.superuser")):
        raise InsufficientPrivilege(
            "Only a superuser may use callbacks.",
            hint="They write files as the operating-system user of the server.",
        )
    program = request.get("program")
    if not isinstance(program, dict):
        return dict(request)
    sources = _find_sources(db, program.get("compile"))
    return {**request, "program": {**program, "sources": sources}}


def _find_sources(db: Database, compile_options: Any) -> dict[str, str]:
    """Return the sources of the functions that a program names, by name.

    Raises:
        ObjectNotReady: a source differs from the digest that the call has recorded.
    """
    if not isinstance(compile_options, dict) or compile_options.get("objects") is None:
        return {}
    fields = argument_checks.check_type("objects", compile_options["objects"], dict)
    table = argument_checks.read_field(fields, "table", str)
    digests = argument_checks.read_field(fields, "digests", dict)
    check_name(table)
    for name in digests:
        check_name(name)
    sources = _read_sources(db, table, list(digests))
    for name, digest in digests.items():
        if name not in sources or hashlib.sha256(sources[name]).hexdigest() != digest:
            raise ObjectNotReady(
                f"custom function '{name}' of object table {table} was changed or deleted since "
                "the call began",
                hint="Call again.",
            )
    return {name: source.decode() for name, source in sources.items()}


def _read_sources(db: Database, table: str, names: list[str]) -> dict[str, bytes]:
    """Read sources from a trusted table.

    The table is checked before, so that no user's view is read. It is checked again afterwards,
    when the lock of the read prevents its replacement.
    """
    row = find_trusted_table(db, table)
    if row is None:
        raise UndefinedTable(f"object table '{table}' does not exist")
    quoted = quote_qualified((row["schema"], table))
    rows = db.rows(sql("functions.sources", table=quoted), names)
    if find_trusted_table(db, table) != row:
        raise ObjectNotReady(
            f"object table {table} was replaced while it was read", hint="Call again."
        )
    return {row["name"]: bytes(row["object"]) for row in rows if row["object"] is not None}


def find_trusted_table(db: Database, name: str) -> Row | None:
    """Return the object table of a name, or None.

    Raises:
        InsufficientPrivilege: roles other than superusers can write to it.
    """
    rows = db.rows(sql("functions.table"), name)
    if not rows:
        return None
    row = rows[0]
    if not (row["trusted"] and row["ordinary"]):
        problem = "owned by a role that is no superuser."
        if row["trusted"]:
            problem = "no ordinary table."
        raise InsufficientPrivilege(
            "DL: Cannot use a table of a non-superuser as object table.",
            detail=f"What it holds would be executed as the server's user; {name} is {problem}",
            hint="A superuser makes one by load_custom_function().",
        )
    if row["open"]:
        raise InsufficientPrivilege(
            f"DL: Cannot use object table {name}: roles that are no superusers may write to it.",
            hint=f"REVOKE INSERT, UPDATE, TRIGGER ON {quote_qualified((row['schema'], name))} "
            "FROM those roles.",
        )
    return row


def build_sealed_request(request: JsonObject, architecture: JsonObject) -> JsonObject:
    """Return the job of a session's request, on a whole state and its own architecture.

    With another architecture, such as one that outputs its weights, a prediction would reveal them.
    """
    job = request.get("job")
    program = request.get("program")
    if job not in SEALED_KINDS or not isinstance(program, dict):
        raise InvalidParameter(
            f"received job {str(job)[:80]!r}; expected one of {', '.join(SEALED_KINDS)}"
        )
    return {
        "job": job,
        "datasets": request.get("datasets"),
        "result_key": request.get("result_key"),
        "program": {**program, "architecture": architecture},
        "state": {"source": "weights_of_chunks", "key": "", "seed": 0},
    }
