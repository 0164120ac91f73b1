"""Relations of the schema `cerebro` that the client reads, and one frozen record for each.

The SQLAlchemy table is created from the fields of the record. A query therefore selects exactly
the columns that the record has. Times are timezone-aware.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of a fit function."""

    run_id: int
    name: str | None
    owner: str
    status: str
    spec: dict[str, Any]  # arguments of the call
    started_at: datetime
    ended_at: datetime | None
    error: str | None
    epochs: int
    segments: list[int]
    pid: int  # backend that runs or ran the call
    software: dict[str, str]  # versions by name
    phase: str | None = None  # what a live run does, such as training
    deadline: datetime | None = None  # end of the budget
    hint: str | None = None  # what can be done about the error


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a run."""

    run_id: int
    name: str | None
    owner: str
    status: str
    epoch: int | None  # None until the rows are packed
    epochs: int | None
    visits_done: int
    visits_total: int
    configs_running: int
    configs_failed: int
    best_mst_key: int | None
    best_value: float | None
    elapsed: timedelta
    eta: timedelta | None  # remaining time; None while it is unknown
    queue_position: int | None  # None unless the run is queued
    phase: str | None = None  # what the run does, such as training
    share: float | None = None  # part of the time that has passed, from 0 to 1


@dataclass(frozen=True, kw_only=True)
class QueueEntry:
    """A run that is in progress or queued."""

    run_id: int
    owner: str | None  # None for a run of another user
    status: str
    position: int | None  # None unless the run is queued
    arrived_at: datetime
    places: int  # slots in which trainers of the run work
    fewest: int  # minimum number of slots that the run requests
    most: int  # maximum number
    configs: int
    steady: bool  # the run keeps its slots until its end
    role: int  # number that runs of one role share
    role_used: float | None  # recent slot-seconds of the role
    role_trainers: int | None  # quotas of the role
    role_configs: int | None
    rests: bool  # the processor time of the role is used up


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Rank of a config in the leaderboard of its run.

    If the run has groups of rows, the configs of each group are ranked separately.
    """

    run_id: int
    rank: int
    mst_key: int
    params: dict[str, Any]
    epochs: int
    status: str
    dataset: str
    metric: str
    value: float | None  # newest value of `metric` on `dataset`
    training_time: timedelta | None
    reason: str | None
    template: str | None = None  # template of cerebro.train
    validation: float | None = None  # metric on the validation set
    training: float | None = None  # metric on the training set
    seconds: float | None = None
    group_value: str | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """Value of one metric of one config after one epoch."""

    run_id: int
    mst_key: int
    epoch: int
    dataset: str  # 'training' or 'validation'
    name: str
    value: float | None
    time: datetime


@dataclass(frozen=True, kw_only=True)
class Span:
    """Work of one segment on one config, from `started_at` to `ended_at`."""

    run_id: int
    segment_id: int
    mst_key: int
    epoch: int
    started_at: datetime
    ended_at: datetime | None
    kind: str  # 'train', 'average' or 'evaluate'
    status: str
    worker_pid: int | None = None  # server process of the worker; None for an evaluation


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One pass of one config over the partition of one segment."""

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
    """Current cost of one config, or of the run itself.

    Seconds and bytes are None for runs of earlier versions, which did not measure them.
    """

    run_id: int
    name: str | None
    owner: str
    mst_key: int | None  # None for the cost of the run that belongs to no config
    status: str
    trainer_seconds: float | None
    backend_seconds: float | None
    gpu_seconds: float | None
    stored_byte_seconds: float
    moved_bytes: int | None
    peak_memory_bytes: int | None
    money: float | None  # None unless an administrator has set prices
    kwh: float | None  # None unless an administrator has set watts
    unmeasured: int  # visits and evaluations that the sums do not include


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a config: a field of its template, or a compile or fit parameter."""

    run_id: int
    mst_key: int
    name: str
    value: Any


def make_table(name: str, record: type[Any]) -> sa.TableClause:
    """Return the relation cerebro.`name` with a column for each field of the record."""
    return sa.table(name, *(sa.column(field.name) for field in fields(record)), schema="cerebro")


def declare_table(name: str, columns: str, schema: str = "cerebro") -> sa.TableClause:
    """Return a relation with the columns whose names are separated by spaces."""
    return sa.table(name, *map(sa.column, columns.split()), schema=schema)


RUN = make_table("run", Run)
PROGRESS = make_table("progress", Progress)
QUEUE = make_table("queue", QueueEntry)
LEADERBOARD = make_table("leaderboard", Standing)
LEARNING_CURVE = make_table("learning_curve", Point)
TIMELINE = make_table("timeline", Span)
VISIT = make_table("visit", Visit)
PARAMETER = make_table("parameter", Parameter)
COST = make_table("cost", Cost)
VERSION = declare_table(
    "model_version",
    "model owner version deployed created_at run_id mst_key template params task target source "
    "metric value training_rows validation_rows group_by",
)
GROUP = declare_table("model_group", "model owner version group_value template value training_rows")
MEMBER = declare_table(
    "model_member", "model owner version group_value position share mst_key template backend run_id"
)
FEATURE = declare_table(
    "feature",
    "model owner version place column_name kind reason constants importance importance_error",
)
GRANT = declare_table("model_grant", "model owner version outline")
EXTENSION = declare_table("pg_extension", "extname extnamespace", "pg_catalog")
ACTIVITY = declare_table("pg_stat_activity", "pid backend_start", "pg_catalog")
NAMESPACE = declare_table("pg_namespace", "oid nspname", "pg_catalog")
CLASS = declare_table(
    "pg_class", "oid relname relnamespace relkind relispartition reltuples", "pg_catalog"
)


def select_relation(name: str) -> sa.Select[tuple[Any, Any]]:
    """Return a query for the schema and the name of a relation that is named as in SQL."""
    return (
        sa.select(NAMESPACE.c.nspname, CLASS.c.relname)
        .join_from(CLASS, NAMESPACE, NAMESPACE.c.oid == CLASS.c.relnamespace)
        .where(CLASS.c.oid == sa.func.to_regclass(name))
    )
