"""Writes the row of a model table: flat weights, which are picked out of a whole state, and beside
it that state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.tables import model_states
from cerebro_plpy.tables.chunked_work import Pieces, at_once
from cerebro_plpy.tables.model_states import ModelTables
from cerebro_plpy.tables.outputs.weights import Weights, weights_piecewise

# pg_dump writes a field as text, twice its size, and cannot carry more than 1 GB.
LARGEST_FIELD = 512 << 20


class ModelKey(NamedTuple):
    """What tells a row of a model table apart; the segment is one that MADlib's tables name, and
    nothing reads.
    """

    mst_key: int
    segment_id: int


def write_model(
    db: Database, tables: ModelTables, key: ModelKey, architecture: str, state: StoredState | None
) -> float | None:
    """One row with the flat weights of a configuration, and its state; the size of the weights in
    kilobytes.

    Without a state there are no weights.
    """
    return at_once(model_pieces(db, tables, key, architecture, state))


def model_pieces(
    db: Database, tables: ModelTables, key: ModelKey, architecture: str, state: StoredState | None
) -> Pieces[float | None]:
    """The same piece by piece, of which the one that writes the weights cannot be cut."""
    found = (yield from flat_weights(db, state, key.mst_key)) if state else None
    add_weights(
        db,
        sql("output.add_model", output=tables.model),
        found,
        (key.mst_key,),
        (architecture, key.segment_id),
    )
    yield
    if state:
        yield from model_states.add(db, tables.states, key.mst_key, state)
    return found.size / 1024 if found else None


def add_weights(
    db: Database,
    statement: str,
    found: Weights | None,
    before: Sequence[object],
    after: Sequence[object],
) -> None:
    """Write weights, between other values; they are not planned with, for which they would be
    copied.
    """
    with db.configured(plan_cache_mode="force_generic_plan"):
        db.rows(statement, *before, found.flat if found else None, *after)


def flat_weights(db: Database, state: StoredState, mst_key: int) -> Pieces[Weights]:
    """The weights of a state, as MADlib has them in a field, unless that would be too large."""
    chunks = _in_order(db.stream(db.platform.state_rows_sql(*state)))
    found = yield from weights_piecewise(chunks, LARGEST_FIELD)
    if found.flat is None:
        db.notice(
            f"mst_key={mst_key}: model_weights is NULL, because {found.size} bytes are more than "
            "pg_dump can carry in a field; its state has the weights."
        )
    return found


def _in_order(rows: Iterable[Row]) -> Iterator[bytes]:
    """The chunks of a state; they lie in the order in which they were written."""
    for number, row in enumerate(rows, 1):
        if row["part"] != number:
            raise DataCorrupted(
                f"part {row['part']} of a state came where part {number} was expected",
                hint="The table that holds the state was changed; train again.",
            )
        yield row["chunk"]
