"""What the client knows of the schema `cerebro`: one frozen record per relation it reads.

The record is the only description: the SQLAlchemy table is made from its fields, so that a query
can neither ask for a column that the record lacks nor leave one out. Times are timezone-aware.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of a fit function; `spec` holds its arguments, `pid` is the backend that runs or ran
    it.

    `software` has versions by names."""

    run_id: int
    name: str | None
    owner: str
    status: str
    spec: dict[str, Any]
    started_at: datetime
    ended_at: datetime | None
    error: str | None
    epochs: int
    segments: list[int]
    pid: int
    software: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is. `eta` is the time still needed, None while nothing is known about it;
    `queue_position` is that of a run that is queued."""

    run_id: int
    name: str | None
    owner: str
    status: str
    epoch: int
    epochs: int
    visits_done: int
    visits_total: int
    configs_running: int
    configs_failed: int
    best_mst_key: int | None
    best_value: float | None
    elapsed: timedelta
    eta: timedelta | None
    queue_position: int | None


@dataclass(frozen=True, kw_only=True)
class QueueEntry:
    """A run that is under way: in how many `places` it has a trainer at work, of the `fewest` and
    the `most` that it wants, and its `position` where it is queued. Of others' runs no `owner` is
    known, but which are of one `role`."""

    run_id: int
    owner: str | None
    status: str
    position: int | None
    arrived_at: datetime
    places: int
    fewest: int
    most: int
    configs: int
    steady: bool
    role: int
    role_used: float | None
    role_trainers: int | None
    role_configs: int | None
    rests: bool


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One config's place in the leaderboard of its run; `value` is its newest `metric` on
    `dataset`.

    `template` is that of cerebro.train; `validation` and `training` are the metric over either data
    set. Of each group of rows, if there are any, configs are ranked apart.
    """

    run_id: int
    rank: int
    mst_key: int
    params: dict[str, Any]
    epochs: int
    status: str
    dataset: str
    metric: str
    value: float | None
    training_time: timedelta | None
    reason: str | None
    template: str | None = None
    validation: float | None = None
    training: float | None = None
    seconds: float | None = None
    group_value: str | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value of one config after one epoch; `dataset` is 'training' or 'validation'."""

    run_id: int
    mst_key: int
    epoch: int
    dataset: str
    name: str
    value: float | None
    time: datetime


@dataclass(frozen=True, kw_only=True)
class Span:
    """What one segment did from `started_at` to `ended_at`; `kind` is 'train', 'average' or
    'evaluate'.

    `worker_pid` is the server process of the worker; None of an evaluation.
    """

    run_id: int
    segment_id: int
    mst_key: int
    epoch: int
    started_at: datetime
    ended_at: datetime | None
    kind: str
    status: str
    worker_pid: int | None = None


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One config training over one segment's partition, once."""

    run_id: int
    epoch: int
    mst_key: int
    segment_id: int
    visit_no: int
    attempt: int
    status: str
    started_at: datetime
    ended_at: datetime | None
    rows: int | None
    state_bytes: int | None
    form: str | None
    threads: int | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one config of a run has cost so far; `mst_key` is None for what belongs to the run and
    to no config.

    Seconds and bytes are None where nobody has measured them, of runs of earlier versions;
    `unmeasured` counts visits and evaluations of which no sum knows. `money` and `kwh` are None
    unless an administrator has set prices and watts.
    """

    run_id: int
    name: str | None
    owner: str
    mst_key: int | None
    status: str
    trainer_seconds: float | None
    backend_seconds: float | None
    gpu_seconds: float | None
    stored_byte_seconds: float
    moved_bytes: int | None
    peak_memory_bytes: int | None
    money: float | None
    kwh: float | None
    unmeasured: int


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of one config: a field of its template, or a setting of its compile or fit
    parameters.
    """

    run_id: int
    mst_key: int
    name: str
    value: Any


def make_table(name: str, record: type[Any]) -> sa.TableClause:
    """The relation cerebro.`name` with the columns that `record` has fields for."""
    return sa.table(name, *(sa.column(field.name) for field in fields(record)), schema="cerebro")


RUN = make_table("run", Run)
PROGRESS = make_table("progress", Progress)
QUEUE = make_table("queue", QueueEntry)
LEADERBOARD = make_table("leaderboard", Standing)
LEARNING_CURVE = make_table("learning_curve", Point)
TIMELINE = make_table("timeline", Span)
VISIT = make_table("visit", Visit)
PARAMETER = make_table("parameter", Parameter)
COST = make_table("cost", Cost)
EXTENSION = sa.table(
    "pg_extension", sa.column("extname"), sa.column("extnamespace"), schema="pg_catalog"
)
ACTIVITY = sa.table(
    "pg_stat_activity", sa.column("pid"), sa.column("backend_start"), schema="pg_catalog"
)
NAMESPACE = sa.table("pg_namespace", sa.column("oid"), sa.column("nspname"), schema="pg_catalog")
CLASS = sa.table(
    "pg_class",
    sa.column("oid"),
    sa.column("relname"),
    sa.column("relnamespace"),
    schema="pg_catalog",
)
