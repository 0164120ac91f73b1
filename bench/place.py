"""The PostgreSQL that the measurements run on: an embedded server of their own, with the workloads'
tables.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection

from bench.copying import write_table
from bench.job import Job
from bench.workloads import RUN_SEED, Workload
from cerebro_db.server import provision
from cerebro_db.server.embedded_server import EmbeddedServer


@dataclass(frozen=True, kw_only=True)
class Place:
    """A server that runs, and a folder for what contenders write."""

    url: str
    superuser_url: str
    pid: int
    log: Path
    folder: Path

    @contextmanager
    def session(self, superuser: bool = False) -> Iterator[Connection]:
        """A session in which every statement commits."""
        opened = psycopg2.connect(self.superuser_url if superuser else self.url)
        opened.autocommit = True
        yield opened
        opened.close()

    def value(self, query: str, *values: object, superuser: bool = False) -> Any:
        """The first column of the first row; None where there is no row."""
        with self.session(superuser) as session, session.cursor() as cursor:
            cursor.execute(query, values or None)
            row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None

    def logged(self) -> int:
        """How long the server's log is now."""
        return self.log.stat().st_size

    def log_since(self, position: int) -> str:
        """What was logged since it was so long."""
        with self.log.open("rb") as file:
            file.seek(position)
            return file.read().decode(errors="replace")


@contextmanager
def started(say: Callable[[str], None]) -> Iterator[Place]:
    """A server for the time of the block; nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix="cerebro-db-bench-", dir="/tmp"))
    folder.chmod(0o755)  # the server may run as another user
    server = EmbeddedServer(folder / "server", report=say)
    try:
        url = server.start()
        status = server.status()
        assert status.pid is not None
        place = Place(
            url=url,
            superuser_url=url.replace(f"//{provision.ROLE}@", "//postgres@", 1),
            pid=status.pid,
            log=server.log,
            folder=folder,
        )
        log_durations(place, 0)
        _keep_nurseries(place)
        yield place
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def log_durations(place: Place, least: int) -> None:
    """Let the server log when each statement of so many ms ended and how long it took: the source
    of the breakdowns.

    It logs none where `least` is -1.
    """
    place.value("ALTER SYSTEM SET log_min_duration_statement = %s", least, superuser=True)
    place.value("SELECT pg_reload_conf()", superuser=True)


def _keep_nurseries(place: Place) -> None:
    """Let nurseries stay, however long others are measured between two calls of ours."""
    place.value(
        "INSERT INTO cerebro.setting VALUES ('trainer_nursery_seconds', '86400')", superuser=True
    )


def load(place: Place, workload: Workload, scale: str, weights: Sequence[bytes | None]) -> Job:
    """Make the tables of a workload; the job that contenders are told. `weights` are of its
    architectures, None where each run draws some."""
    name = workload.key.lower()
    job = Job(
        url=place.url,
        train=f"{name}_train",
        valid=f"{name}_valid",
        packed=f"{name}_packed",
        packed_valid=f"{name}_packed_valid",
        models=f"{name}_models",
        selection=f"{name}_configs",
        output=f"{name}_model",
        classes=workload.classes,
        epochs=workload.epochs_at(scale),
        segments=workload.segments,
        seed=RUN_SEED,
        configs=workload.configs,
    )
    with place.session() as session:
        # Another part of the same call may have measured this workload.
        made = (job.train, job.valid, job.models, job.selection, f"{job.selection}_summary")
        with session.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {', '.join(made)}")
        for table, examples in zip((job.train, job.valid), workload.examples(scale), strict=True):
            write_table(session, table, examples)
        _load_models(session, job, workload, weights)
        _load_configs(session, job)
    return job


def _load_models(
    session: Connection, job: Job, workload: Workload, weights: Sequence[bytes | None]
) -> None:
    with session.cursor() as cursor:
        for architecture, flat in zip(workload.architectures, weights, strict=True):
            cursor.execute(
                "SELECT load_keras_model(%s, %s::json, %s)", (job.models, architecture, flat)
            )


def _load_configs(session: Connection, job: Job) -> None:
    rows = [
        (number, c.model, c.compile_params, c.fit_params) for number, c in enumerate(job.configs, 1)
    ]
    with session.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {job.selection} (mst_key integer PRIMARY KEY, model_id integer, "
            f"compile_params varchar, fit_params varchar);CREATE TABLE {job.selection}_summary "
            f"(model_arch_table varchar, object_table varchar);INSERT INTO {job.selection}_summary "
            "VALUES (%s, NULL)",
            (job.models,),
        )
        cursor.executemany(f"INSERT INTO {job.selection} VALUES (%s, %s, %s, %s)", rows)


def pack(session: Connection, job: Job) -> float:
    """Make the packed tables, anew where there are any; seconds."""
    with session.cursor() as cursor:
        for table in (job.packed, job.packed_valid):
            cursor.execute(f"DROP TABLE IF EXISTS {table}, {table}_summary")
        began = time.perf_counter()
        cursor.execute(
            "SELECT training_preprocessor_dl(%s, %s, 'y', 'x', n_segments => %s, seed => %s)",
            (job.train, job.packed, job.segments, job.seed),
        )
        cursor.execute(
            "SELECT validation_preprocessor_dl(%s, %s, 'y', 'x', %s)",
            (job.valid, job.packed_valid, job.packed),
        )
        return time.perf_counter() - began


def environment() -> dict[str, str]:
    """Of a contender: what this process has, and where the modules of these measurements lie."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
