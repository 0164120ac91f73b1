"""Runs the function by which a model's owner lets others predict: see `grants`.

It runs with the rights of its owner, in a session of who predicts. So nothing is run but what we
make ourselves: it is compared with a function that is made anew of the same tables, and these must
be of a kind that no reading of them runs code of the owner's. What it may ask of the trainer is
said in `trainer.ownership`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_qualified
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import InsufficientPrivilege

# where who trains or predicts may make something, for as long as it takes to look at it
SCHEMA = "cerebro_state"


class Granted(NamedTuple):
    """The function of a model: its definition as the server writes it, and which version of it that
    is.
    """

    oid: int
    version: str
    qualified: str
    name: str
    definition: str


def run(db: Database, model: int, spec: str, mst_key: int) -> int:
    """Begin the job of `spec` on a model of that table (an oid), and fill it; how many chunks its
    state has.

    The tables cannot change while this transaction has them locked; the function can, which is why
    it is looked at again: what another one has done is undone with the transaction.
    """
    before = _found(db, model)
    if before is None or before.definition != _expected(db, model, before):
        raise _refusal()
    count = int(db.value(sql("grant.call", function=before.qualified), spec, mst_key))
    if _found(db, model) != before:
        raise _refusal()
    return count


def _found(db: Database, model: int) -> Granted | None:
    rows = db.rows(sql("grant.definition"), model)
    return Granted(**rows[0]) if len(rows) == 1 else None


def _expected(db: Database, model: int, granted: Granted) -> str | None:
    """The definition that the function has if it is one of ours; None where what it reads could run
    code.
    """
    reads = db.rows(sql("grant.reads"), granted.oid)
    tables = {row["oid"]: row["name"] for row in reads if row["name"] is not None}
    if model not in tables or not all(row["plain"] for row in reads):
        return None
    states = [name for oid, name in tables.items() if oid != model]
    name = f"predict_{os.getpid()}"
    function = quote_qualified((SCHEMA, name))
    state = states[0] if states else tables[model]
    signature = literal(f"{function}(json, integer)")
    db.rows(
        sql(
            "grant.function", function=function, literal=signature, model=tables[model], state=state
        )
    )
    made = str(db.value(sql("grant.definition_of"), f"{function}(json, integer)"))
    db.rows(sql("grant.drop", function=function))
    return made.replace(f"{SCHEMA}.{name}(", f"{granted.qualified}(").replace(
        f"{name}.", f"{granted.name}."
    )


def _refusal() -> InsufficientPrivilege:
    return InsufficientPrivilege(
        "the function that lets you predict with this model is not the one that "
        "cerebro.grant_predict makes, or what it reads are no plain tables of its owner: it is "
        "not run",
        hint="The owner of the model can call cerebro.revoke_predict and then "
        "cerebro.grant_predict.",
    )
