"""The statements of a visit: functions of the trainer, and the rows and states that pass through them.

On PostgreSQL any session reads any segment's rows, and the trainer belongs to the session. On Greenplum the trainer
belongs to the process that serves the session on one segment: a statement with one of its functions names that
segment by its key, and is sent there alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cerebro_plpy.database import strict_json
from cerebro_plpy.database.dispatch import Rows, Session, Statement
from cerebro_plpy.database.names import quote_identifier
from cerebro_plpy.database.queries import sql
from cerebro_plpy.platform.protocol import Dataset, StateSource, Worker

PART_BYTES = 128 << 10  # of a buffer, on its way to the trainer: a backend holds no more of it at a time


def job_result(rows: Rows) -> dict[str, Any]:
    """The JSON that a statement's only row holds; the driver may have parsed it already."""
    return dict(strict_json.restored(rows[0][0]))


def at(worker: Worker) -> str:
    """What sends a statement to the process that has the worker's trainer."""
    return "" if worker.segment_id is None else sql("greenplum.at", key=str(worker.segment_id))


def call(worker: Worker, name: str, *values: object) -> Statement:
    """A function of the trainer."""
    return Statement(sql(name, at=at(worker)), values)


def begin(worker: Worker, job: dict[str, Any], datasets: tuple[Dataset, ...], state: StateSource) -> list[Statement]:
    """Open a job in the trainer and give it its state, unless that is there already."""
    source = "kept" if worker.state == state.key and state.source not in ("new", "sealed") else state.source
    spec = {
        **without_known_program(worker, job),
        "state": {"source": source, "key": state.key, "seed": state.seed, "shares": [rows for _, rows in state.of]},
        "datasets": [d.key for d in datasets],
    }
    if source == "sealed":
        return [Statement(state.sql, (json.dumps(spec), *state.values))]
    parts = [call(worker, "visit.job_begin", json.dumps(spec))]
    if source == "averaged":
        return parts + [statement for one, _ in state.of for statement in _read_one_of_several(worker, one)]
    return parts if source in ("kept", "new") else [*parts, *read(worker, state)]


def read(worker: Worker, state: StateSource) -> list[Statement]:
    """Pass a state to the trainer; where trainers are bound to segments, it hops to the trainer's own before."""
    if worker.segment_id is None:
        return [Statement(sql("visit.state_read", source=state.sql), state.values)]
    table, key = "cerebro_weights" if state.source == "weights" else "cerebro_chunks", str(worker.segment_id)
    emptied = [Statement(sql("greenplum.empty", table=table))] if state.source == "weights" else []
    return [
        Statement(sql("greenplum.hop", table=table, key=key, source=state.sql), state.values),
        Statement(sql("visit.state_read", source=sql("greenplum.hopped", table=table, key=key))),
        *emptied,
    ]


def _read_one_of_several(worker: Worker, state: StateSource) -> list[Statement]:
    """Pass a state to the trainer, where others came before it in the same transaction."""
    emptied = [] if worker.segment_id is None else [Statement(sql("greenplum.empty", table="cerebro_chunks"))]
    return [*emptied, *read(worker, state)]


def without_known_program(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    """The request without a program that the trainer was told already: an architecture may be long."""
    known = request.get("program_key") in worker.programs
    return {name: value for name, value in request.items() if name != "program" or not known}


def joined(parts: Sequence[Statement]) -> Statement:
    """Several statements as one transaction."""
    return Statement("; ".join(part.sql for part in parts), [value for part in parts for value in part.values])


def load(worker: Worker, dataset: Dataset, cache_bytes: int) -> Statement:
    """Bring a partition into the trainer."""
    values = (dataset.key, cache_bytes, dataset.key, dataset.segment_id, dataset.key)
    return Statement(sql("visit.dataset_load", at=at(worker), **reading(dataset)), values)


def stream(dataset: Dataset, number: int) -> Statement:
    """Pass a partition through an open job, for the pass of that number."""
    return Statement(sql("visit.dataset_stream", **reading(dataset)), (dataset.key, number, dataset.segment_id))


def reading(dataset: Dataset) -> dict[str, str]:
    """What reading the buffers of a packed table takes."""
    table = dataset.table
    names = table.independent + table.dependent
    numbers = range(1, len(names) + 1)
    arrays = (
        f"t.{quote_identifier(n)} AS c{i}, t.{quote_identifier(n + '_shape')} AS s{i}" for i, n in zip(numbers, names)
    )
    parts = sql(
        "visit.dataset_parts",
        table=table.relation.quoted,
        key=table.key,
        inputs=str(len(table.independent)),
        count=str(len(names)),
        columns=", ".join(arrays),
        arrays=" ".join(f"WHEN {i} THEN n.c{i}" for i in numbers),
        shapes=", ".join(f"p.s{i}" for i in numbers),
        sizes=", ".join(f"pg_catalog.octet_length(p.c{i})" for i in numbers),
        part=str(PART_BYTES),
    )
    return {"parts": parts, "part": str(PART_BYTES)}


def state_table(session: Session, name: str) -> str:
    """Make a table for a state, anew; `name` is quoted."""
    return sql("greenplum.state_table" if session.greenplum else "run.state_table", state=name)


def megabytes(size: int) -> str:
    """Bytes for a message.

    >>> megabytes(3_500_000)
    '3.5'
    """
    return f"{size / 1e6:,.1f}"
