"""The whole states of the models in a model table, from which training can go on.

Scripts of MADlib's drop a model's tables by the names that MADlib gives them, and train again into
the same name. So the states have no name beside those: they lie in a table of schema cerebro_state,
which the summary table names in a constraint that is always true. The constraint follows when
either is renamed or dumped, keeps the states from being dropped by mistake, and is gone with the
summary. Tables that nothing names any more are orphans, and are swept.
"""

from __future__ import annotations

import secrets
import time
from typing import NamedTuple

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.platform.state_tables import StoredState, model_states_table
from cerebro_plpy.tables.chunked_work import Pieces, next_size

OLD_SUFFIX = "_state"
"""Versions before 0.3.0 kept the states in a table beside the model's, with this at the end of its
name.
"""


FIRST_BLOCKS = 128  # a MB, which takes milliseconds


class ModelTables(NamedTuple):
    """The quoted names of a model table and of the table with its states."""

    model: str
    states: str


def create(db: Database, summary: str) -> str:
    """Make a table for the states of the models that a summary, just made, tells of; its quoted
    name.
    """
    sweep(db)
    states = model_states_table(secrets.token_hex(8))
    db.rows(sql("states.create", states=states, **db.platform.clauses))
    name = literal(states)
    db.rows(sql("states.chunk", states=states, literal=name))
    db.rows(sql("states.tie", summary=summary, literal=name))
    return states


def sweep(db: Database) -> int:
    """Drop the states of the caller's models that are gone, as far as nobody reads them; their
    bytes.
    """
    orphans = db.rows(sql("states.orphans"))
    for orphan in orphans:
        db.rows(sql("states.drop", states=orphan["name"]))
    return sum(orphan["bytes"] for orphan in orphans)


def find(catalog: Catalog, model: Relation, summary: Relation) -> Relation | None:
    """The table with the states of a model table, or None."""
    oid = catalog.db.value(sql("states.tied"), summary.oid)
    return (
        catalog.read_relation(oid) if oid is not None else catalog.find_companion(model, OLD_SUFFIX)
    )


def add(db: Database, states: str, mst_key: int, state: StoredState) -> Pieces[None]:
    """Copy a state, with the frozen weights that it shares, in ranges of blocks where it can be
    read so.
    """
    before = 0
    for table in state.tables:
        source = db.platform.state_range_sql(table, state.segment_id)
        if source is None:
            db.rows(
                sql("states.add", states=states, source=db.platform.state_rows_sql(*state)),
                mst_key,
                before,
            )
            return
        yield from _blocks(
            db, sql("states.add", states=states, source=source), (mst_key, before), table
        )
        before = db.value(sql("states.parts", state=table)) if table != state.tables[-1] else 0


def _blocks(db: Database, statement: str, values: tuple[int, int], table: str) -> Pieces[None]:
    """Copy what a table has; the values are the model's key, and how many parts of it come before
    these.
    """
    copy = db.prepare(statement, *values, 0, 0)
    start, size, blocks = 0, FIRST_BLOCKS, db.value(sql("states.blocks"), table)
    while start < blocks:
        began = time.monotonic()
        copy(*values, start, start + size)
        start, size = start + size, next_size(size, time.monotonic() - began)
        yield
