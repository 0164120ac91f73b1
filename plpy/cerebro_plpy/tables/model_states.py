"""The whole states of the models in a model table, from which training can resume.

Scripts for MADlib drop a model's tables by the names that MADlib gives them, and train again under
the same name. So the states have no name of that kind: they are stored in a table of schema
cerebro_state, which the summary table names in a constraint that is always true. The constraint
follows when either table is renamed or dumped, prevents dropping the states by mistake, and goes
with the summary. State tables without such a constraint are orphans, and are swept.
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
from cerebro_plpy.tables.chunked_work import ChunkedWork, choose_next_size

OLD_SUFFIX = "_state"
"""Suffix of the table of states beside a model table, in versions before 0.3.0."""
FIRST_BLOCKS = 128
"""Blocks that are copied first: 1 MB, which takes milliseconds."""


class ModelTables(NamedTuple):
    """The quoted names of a model table and of the table with its states."""

    model: str
    states: str


def create(db: Database, summary: str) -> str:
    """Create a table for the states of models, tied to their new summary; return its name."""
    sweep(db)
    states = model_states_table(secrets.token_hex(8))
    name = literal(states)
    db.rows(sql("states.create", states=states, **db.platform.clauses))
    db.rows(sql("states.chunk", states=states, literal=name))
    db.rows(sql("states.tie", summary=summary, literal=name))
    return states


def sweep(db: Database) -> int:
    """Drop the states of the caller's dropped models, unless they are read; return their bytes."""
    orphans = db.rows(sql("states.orphans"))
    for orphan in orphans:
        db.rows(sql("states.drop", states=orphan["name"]))
    return sum(orphan["bytes"] for orphan in orphans)


def find(catalog: Catalog, model: Relation, summary: Relation | None) -> Relation | None:
    """Return the table with the states of a model table, if there is one."""
    if summary is None:
        return None
    oid = catalog.db.value(sql("states.tied"), summary.oid)
    if oid is None:
        return catalog.find_companion(model, OLD_SUFFIX)
    return catalog.read_relation(oid)


def add(db: Database, states: str, mst_key: int, state: StoredState) -> ChunkedWork[None]:
    """Copy a state with its shared frozen weights, by ranges of blocks if the server can."""
    first_part = 0
    for table in state.tables:
        source = db.platform.state_range_sql(table, state.segment_id)
        if source is None:
            rows = db.platform.state_rows_sql(*state)
            db.rows(sql("states.add", states=states, source=rows), mst_key, first_part)
            return
        statement = sql("states.add", states=states, source=source)
        yield from _copy_blocks(db, statement, mst_key, first_part, table)
        if table != state.tables[-1]:
            first_part = db.value(sql("states.parts", state=table))


def _copy_blocks(
    db: Database, statement: str, mst_key: int, first_part: int, table: str
) -> ChunkedWork[None]:
    """Copy the chunks of a table; `first_part` chunks of the state were copied before."""
    copy = db.prepare(statement, mst_key, first_part, 0, 0)
    start = 0
    size = FIRST_BLOCKS
    blocks = db.value(sql("states.blocks"), table)
    while start < blocks:
        start_time = time.monotonic()
        copy(mst_key, first_part, start, start + size)
        start += size
        size = choose_next_size(size, time.monotonic() - start_time)
        yield
