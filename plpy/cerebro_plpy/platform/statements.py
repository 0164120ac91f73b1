"""The statements of a visit: functions of the trainer, and the rows that pass through them.

A statement with a function of the trainer must be sent to the trainer's process, which depends on
the platform (see `Platform.dispatch_clause`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Rows, Statement
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.database.sql.identifiers import Names, quote_identifier
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.platform.job import Dataset, Filling, StateSource
from cerebro_plpy.platform.visit_protocol import Worker

# Size of the parts that pass between a table and the trainer: a backend buffers one part.
PART_BYTES = 128 << 10


def parse_result(rows: Rows) -> JsonObject:
    """Return the JSON in a statement's only row, which the driver may have parsed already."""
    return dict(strict_json.restore(rows[0][0]))


def dispatch_clause(worker: Worker) -> str:
    """Return the clause that sends a statement to the process with the worker's trainer."""
    return worker.session.platform.dispatch_clause(worker.segment_id)


def call(worker: Worker, name: str, *values: object) -> Statement:
    """Return the statement that calls a function of the trainer."""
    return Statement(sql(name, at=dispatch_clause(worker)), values)


def read_chunks(worker: Worker, state: StateSource) -> Statement:
    """Return the statement that reads the chunks of a state."""
    if state.stored is None:
        return Statement(state.sql, state.values)
    return Statement(worker.session.platform.state_rows_sql(*state.stored))


def join(parts: Sequence[Statement]) -> Statement:
    """Join statements into one transaction."""
    return Statement(
        "; ".join(part.sql for part in parts), [value for part in parts for value in part.values]
    )


def load_dataset(worker: Worker, key: str, rows: Dataset) -> Statement:
    """Return the statement that loads a partition into the trainer.

    Args:
        key: name of the partition in the trainer.
        rows: the partition, where the worker can read it.
    """
    cache_bytes = int(worker.memory.cache_bytes * rows.cache_share)
    values = (key, cache_bytes, key, rows.segment_id, key)
    text = sql("visit.dataset_load", at=dispatch_clause(worker), **read_dataset(rows))
    return Statement(text, values)


def log_metrics(
    key: Sequence[int],
    results: Mapping[str, JsonObject],
    names: Sequence[str],
    ended_at: float | None = None,
) -> Statement:
    """Return the statement that logs metrics.

    Args:
        key: run, configuration and epoch.
        results: loss and metrics by data set.
        names: names of the metrics.
        ended_at: when they were computed, in Unix seconds; None if they were computed just now.
    """
    rows = [
        {"dataset": dataset, "name": name, "value": repr(float(value))}
        for dataset, result in results.items()
        for name, value in zip(("loss", *names), (result["loss"], *result["metrics"]))
    ]
    return Statement(sql("run.metrics"), (*key, ended_at, json.dumps(rows)))


def stream_dataset(key: str, rows: Dataset, number: int) -> Statement:
    """Return the statement that passes a partition through an open job.

    Args:
        key: name of the partition in the trainer.
        rows: the partition, where the worker can read it.
        number: number of the pass.
    """
    condition = ""
    values: list[object] = [key, number, rows.segment_id]
    if rows.buffers is not None:
        condition = sql("visit.some_buffers")
        values.append(list(rows.buffers))
    return Statement(sql("visit.dataset_stream", **read_dataset(rows, condition)), values)


def select_sample(dataset: Dataset) -> str:
    """Return the condition on the buffers of a sample; '' for all buffers."""
    if dataset.period == 1:
        return ""
    return sql("visit.sampled_buffers", period=str(dataset.period))


def read_dataset(dataset: Dataset, condition: str = "") -> dict[str, str]:
    """Return the parts of a statement that reads the buffers of a packed table.

    Args:
        condition: selects some of the buffers.
    """
    table = dataset.table
    names = table.independent + table.copied_columns
    numbers = range(1, len(names) + 1)
    parts = sql(
        "visit.dataset_parts",
        table=table.relation.quoted,
        key=table.key,
        some=f"{select_sample(dataset)} {condition}",
        inputs=str(len(table.independent)),
        weights=str(len(table.copied_columns) - len(table.dependent)),
        count=str(len(names)),
        columns=_alias_arrays(names),
        arrays=" ".join(f"WHEN {i} THEN n.c{i}" for i in numbers),
        shapes=", ".join(f"p.s{i}" for i in numbers),
        sizes=", ".join(f"pg_catalog.octet_length(p.c{i})" for i in numbers),
        part=str(PART_BYTES),
    )
    return {"parts": parts, "part": str(PART_BYTES)}


def _alias_arrays(names: Names) -> str:
    """Return a SELECT list of arrays and their shapes, as c1, s1, c2, s2 …"""
    return ", ".join(
        f"t.{quote_identifier(name)} AS c{i}, t.{quote_identifier(name + '_shape')} AS s{i}"
        for i, name in enumerate(names, 1)
    )


def store_outputs(filling: Filling) -> Statement:
    """Return the statement that stores a layer's outputs; targets and weights are copied."""
    table = filling.source.table
    names = table.independent + table.copied_columns
    inputs = range(1, len(table.independent) + 1)
    stored = (table.independent[0], *table.copied_columns)
    text = sql(
        "visit.features_store",
        features=filling.table,
        names=", ".join(
            quote_identifier(name + suffix) for name in stored for suffix in ("", "_shape")
        ),
        shapes=", ".join(f"b.s{i}" for i in inputs),
        inputs=", ".join(f"b.c{i}" for i in inputs),
        others="".join(f", b.c{i}, b.s{i}" for i in range(inputs.stop, len(names) + 1)),
        columns=_alias_arrays(names),
        table=table.relation.quoted,
        key=table.key,
    )
    segment = filling.source.segment_id
    return Statement(text, (segment, filling.layer, list(filling.shape), segment))


def format_megabytes(size: int) -> str:
    """Return a number of bytes in megabytes, for a message.

    >>> format_megabytes(3_500_000)
    '3.5'
    """
    return f"{size / 1e6:,.1f}"
