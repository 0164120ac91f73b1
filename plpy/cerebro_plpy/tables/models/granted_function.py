"""Run the function with which a model's owner lets others predict; see `grants`.

The function runs with the rights of its owner, in the session of the caller. Only a function that
this extension made may run: it is compared with one that is made anew for the same tables. These
must be of a kind that does not run the owner's code when they are read. The privileged requests to
the trainer are described in `trainer_client.privileged_requests`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_qualified
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import InsufficientPrivilege

TEMPORARY_SCHEMA = "cerebro_state"
"""A schema in which callers may create a function for as long as the comparison takes."""


class GrantedFunction(NamedTuple):
    """The function of a model, with the columns of `grant.definition`."""

    oid: int
    version: str  # changes when the function is replaced
    qualified: str
    name: str
    definition: str  # as the server writes it


def run(db: Database, model: int, spec: str, mst_key: int) -> int:
    """Begin the job of `spec` with a model, and fill it; return the number of its state's chunks.

    This transaction locks the tables, but cannot lock the function. So the function is compared
    again afterwards: the effects of another one are undone with the transaction.

    Args:
        model: oid of the model table.

    Raises:
        InsufficientPrivilege: the function is not one that `cerebro.grant_predict` makes.
    """
    function = _find_function(db, model)
    if function is None or function.definition != _make_definition(db, model, function):
        raise _refusal()
    chunks = int(db.value(sql("grant.call", function=function.qualified), spec, mst_key))
    if _find_function(db, model) != function:
        raise _refusal()
    return chunks


def _find_function(db: Database, model: int) -> GrantedFunction | None:
    rows = db.rows(sql("grant.definition"), model)
    if len(rows) != 1:
        return None
    return GrantedFunction(**rows[0])


def _make_definition(db: Database, model: int, function: GrantedFunction) -> str | None:
    """Return the definition of our function for the same tables; None if reading could run code."""
    relations = db.rows(sql("grant.reads"), function.oid)
    tables = {row["oid"]: row["name"] for row in relations if row["name"] is not None}
    if model not in tables or not all(row["plain"] for row in relations):
        return None
    state_tables = (name for oid, name in tables.items() if oid != model)
    name = f"predict_{os.getpid()}"
    copy = quote_qualified((TEMPORARY_SCHEMA, name))
    signature = f"{copy}(json, integer)"
    db.rows(
        sql(
            "grant.function",
            function=copy,
            literal=literal(signature),
            model=tables[model],
            state=next(state_tables, tables[model]),
        )
    )
    definition = str(db.value(sql("grant.definition_of"), signature))
    db.rows(sql("grant.drop", function=copy))
    definition = definition.replace(f"{TEMPORARY_SCHEMA}.{name}(", f"{function.qualified}(")
    return definition.replace(f"{name}.", f"{function.name}.")


def _refusal() -> InsufficientPrivilege:
    return InsufficientPrivilege(
        "the function that lets you predict with this model is not the one that "
        "cerebro.grant_predict makes, or what it reads are no plain tables of its owner: it is "
        "not run",
        hint="The owner of the model can call cerebro.revoke_predict and then "
        "cerebro.grant_predict.",
    )
