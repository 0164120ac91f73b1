"""The statements of a visit: functions of the trainer, and the rows that pass through them.

A statement with a function of the trainer must be sent to the process that has the trainer, which
is the platform's business (see `Platform.at`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Rows, Statement
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.platform.job import Dataset, Filling, StateSource
from cerebro_plpy.platform.visit_protocol import Worker

PART_BYTES = (
    128 << 10
)  # of what passes between a table and the trainer: a backend holds no more of it at a time


def job_result(rows: Rows) -> dict[str, Any]:
    """The JSON that a statement's only row holds; the driver may have parsed it already."""
    return dict(strict_json.restore(rows[0][0]))


def at(worker: Worker) -> str:
    """What sends a statement to the process that has the worker's trainer."""
    return worker.session.platform.dispatch_clause(worker.segment_id)


def call(worker: Worker, name: str, *values: object) -> Statement:
    """A function of the trainer."""
    return Statement(sql(name, at=at(worker)), values)


def chunks(worker: Worker, state: StateSource) -> Statement:
    """What reads the chunks of a state."""
    if state.stored is None:
        return Statement(state.sql, state.values)
    return Statement(worker.session.platform.state_rows_sql(*state.stored))


def join(parts: Sequence[Statement]) -> Statement:
    """Several statements as one transaction."""
    return Statement(
        "; ".join(part.sql for part in parts), [value for part in parts for value in part.values]
    )


def load(worker: Worker, dataset: Dataset) -> Statement:
    """Bring a partition into the trainer."""
    values = (dataset.key, worker.memory.cache_bytes, dataset.key, dataset.segment_id, dataset.key)
    return Statement(sql("visit.dataset_load", at=at(worker), **reading(dataset)), values)


def metrics(
    place: Sequence[int], found: Mapping[str, Mapping[str, Any]], names: Sequence[str]
) -> Statement:
    """What logs metrics of a run, a configuration and an epoch, by data set with its loss."""
    rows = [
        {"dataset": dataset, "name": name, "value": repr(float(value))}
        for dataset, told in found.items()
        for name, value in zip(("loss", *names), (told["loss"], *told["metrics"]))
    ]
    return Statement(sql("run.metrics"), (*place, json.dumps(rows)))


def stream(dataset: Dataset, number: int) -> Statement:
    """Pass a partition through an open job, for the pass of that number."""
    some = "" if dataset.buffers is None else sql("visit.some_buffers")
    chosen = () if dataset.buffers is None else (list(dataset.buffers),)
    values = (dataset.key, number, dataset.segment_id, *chosen)
    return Statement(sql("visit.dataset_stream", **reading(dataset, some)), values)


def reading(dataset: Dataset, some: str = "") -> dict[str, str]:
    """What reading the buffers of a packed table takes, or `some` of them."""
    table = dataset.table
    names = table.independent + table.dependent + ((table.weight,) if table.weight else ())
    numbers = range(1, len(names) + 1)
    arrays = (
        f"t.{quote_identifier(n)} AS c{i}, t.{quote_identifier(n + '_shape')} AS s{i}"
        for i, n in zip(numbers, names)
    )
    parts = sql(
        "visit.dataset_parts",
        table=table.relation.quoted,
        key=table.key,
        some=some,
        inputs=str(len(table.independent)),
        weights=str(len(names) - len(table.independent) - len(table.dependent)),
        count=str(len(names)),
        columns=", ".join(arrays),
        arrays=" ".join(f"WHEN {i} THEN n.c{i}" for i in numbers),
        shapes=", ".join(f"p.s{i}" for i in numbers),
        sizes=", ".join(f"pg_catalog.octet_length(p.c{i})" for i in numbers),
        part=str(PART_BYTES),
    )
    return {"parts": parts, "part": str(PART_BYTES)}


def fill(filling: Filling) -> Statement:
    """What stores what a layer gives for a partition; targets and weights are copied."""
    table = filling.source.table
    first, beside = (
        table.independent[0],
        (*table.dependent, *((table.weight,) if table.weight else ())),
    )
    named = [(f"c{i}", f"s{i}", name) for i, name in enumerate((*table.independent, *beside), 1)]
    inputs, others = named[: len(table.independent)], named[len(table.independent) :]
    text = sql(
        "visit.features_store",
        features=filling.table,
        names=", ".join(
            quote_identifier(name + end) for name in (first, *beside) for end in ("", "_shape")
        ),
        shapes=", ".join(f"b.{shape}" for _, shape, _ in inputs),
        inputs=", ".join(f"b.{data}" for data, _, _ in inputs),
        others="".join(f", b.{data}, b.{shape}" for data, shape, _ in others),
        columns=", ".join(
            (
                f"t.{quote_identifier(name)} AS {data}, t.{quote_identifier(name + '_shape')} AS "
                f"{shape}"
            )
            for data, shape, name in named
        ),
        table=table.relation.quoted,
        key=table.key,
    )
    segment = filling.source.segment_id
    return Statement(text, (segment, filling.layer, list(filling.shape), segment))


def megabytes(size: int) -> str:
    """Bytes for a message.

    >>> megabytes(3_500_000)
    '3.5'
    """
    return f"{size / 1e6:,.1f}"
