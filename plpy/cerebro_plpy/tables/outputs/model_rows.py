"""Rows of a model table: flat weights, taken from a whole state, and that state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.tables import model_states
from cerebro_plpy.tables.chunked_work import ChunkedWork
from cerebro_plpy.tables.model_states import ModelTables
from cerebro_plpy.tables.outputs.weights import Weights, read_weights

MAX_FIELD_BYTES = 512 << 20
"""pg_dump writes a field as text of twice its size, and cannot carry more than 1 GB."""


class ModelKey(NamedTuple):
    """The key of a row of a model table."""

    mst_key: int
    segment_id: int  # a column of MADlib's tables that is never read


def write_model_pieces(
    db: Database, tables: ModelTables, key: ModelKey, architecture: str, state: StoredState | None
) -> ChunkedWork[float | None]:
    """Write a row with the weights of a configuration, and its state.

    The statement that writes the weights cannot be divided.

    Returns:
        The size of the weights in kilobytes; None without a state.
    """
    weights = None
    if state:
        weights = yield from read_flat_weights(db, state, key.mst_key)
    query = sql("output.add_model", output=tables.model)
    insert_weights(db, query, (key.mst_key,), weights, (architecture, key.segment_id))
    yield
    if state:
        yield from model_states.add(db, tables.states, key.mst_key, state)
    return weights.kilobytes if weights else None


def insert_weights(
    db: Database,
    statement: str,
    leading: Sequence[object],
    weights: Weights | None,
    trailing: Sequence[object],
) -> None:
    """Insert weights between other values.

    The plan is generic, because planning for these values would copy the weights.
    """
    with db.configured(plan_cache_mode="force_generic_plan"):
        db.rows(statement, *leading, weights and weights.flat, *trailing)


def read_flat_weights(db: Database, state: StoredState, mst_key: int) -> ChunkedWork[Weights]:
    """Return the weights of a state in MADlib's format, unless they are too large for a field."""
    chunks = _check_order(db.stream(db.platform.state_rows_sql(*state)))
    weights = yield from read_weights(chunks, MAX_FIELD_BYTES)
    if weights.flat is None:
        db.notice(
            f"mst_key={mst_key}: model_weights is NULL, because "
            f"{count_nouns(weights.size, 'byte', 'is')} more than "
            "pg_dump can carry in a field; its state has the weights."
        )
    return weights


def _check_order(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the chunks of a state, which are stored in the order in which they were written."""
    for number, row in enumerate(rows, 1):
        if row["part"] != number:
            raise DataCorrupted(
                f"part {row['part']} of a state came where part {number} was expected",
                hint="The table that holds the state was changed; train again.",
            )
        yield row["chunk"]
