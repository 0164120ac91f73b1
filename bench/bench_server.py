"""The embedded PostgreSQL server of the measurements, with the tables of the workloads."""

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

Echo = Callable[[str], None]  # prints a line of progress


@dataclass(frozen=True, kw_only=True)
class BenchServer:
    """A running server, and a folder for the files of contenders."""

    url: str
    superuser_url: str
    pid: int
    log: Path
    folder: Path

    @contextmanager
    def session(self, superuser: bool = False) -> Iterator[Connection]:
        """Yield a session in which every statement commits."""
        session = psycopg2.connect(self.superuser_url if superuser else self.url)
        session.autocommit = True
        yield session
        session.close()

    def value(self, query: str, *values: object, superuser: bool = False) -> Any:
        """Return the first column of the first row; None if there is no row."""
        with self.session(superuser) as session, session.cursor() as cursor:
            cursor.execute(query, values or None)
            row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None

    def measure_log(self) -> int:
        """Return the size of the server's log."""
        return self.log.stat().st_size

    def read_log(self, position: int) -> str:
        """Return the log from a position on."""
        with self.log.open("rb") as file:
            file.seek(position)
            return file.read().decode(errors="replace")


@contextmanager
def start_server(echo: Echo) -> Iterator[BenchServer]:
    """Yield a server, which is stopped and removed after the block."""
    folder = Path(tempfile.mkdtemp(prefix="cerebro-db-bench-", dir="/tmp"))
    folder.chmod(0o755)  # the server may run as another user
    embedded_server = EmbeddedServer(folder / "server", report=echo)
    try:
        url = embedded_server.start()
        status = embedded_server.status()
        assert status.pid is not None
        server = BenchServer(
            url=url,
            superuser_url=url.replace(f"//{provision.ROLE}@", "//postgres@", 1),
            pid=status.pid,
            log=embedded_server.log,
            folder=folder,
        )
        log_durations(server, 0)
        _keep_fork_servers(server)
        yield server
    finally:
        embedded_server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def log_durations(server: BenchServer, least: int) -> None:
    """Let the server log the ends and the durations of statements, the source of breakdowns.

    Args:
        least: shortest duration in ms that is logged; -1 for none.
    """
    server.value("ALTER SYSTEM SET log_min_duration_statement = %s", least, superuser=True)
    server.value("SELECT pg_reload_conf()", superuser=True)


def _keep_fork_servers(server: BenchServer) -> None:
    """Keep fork servers alive, because the time between two calls of ours may be long."""
    server.value("SELECT cerebro.set('trainer_nursery_seconds', 86400)", superuser=True)


def load(
    server: BenchServer, workload: Workload, scale: str, weights: Sequence[bytes | None]
) -> Job:
    """Create the tables of a workload; return its job.

    Args:
        weights: initial weights of the architectures; None if each run draws its own.
    """
    name = workload.key.lower()
    job = Job(
        url=server.url,
        train=f"{name}_train",
        valid=f"{name}_valid",
        packed=f"{name}_packed",
        packed_valid=f"{name}_packed_valid",
        models=f"{name}_models",
        selection=f"{name}_configs",
        output=f"{name}_model",
        classes=workload.classes,
        epochs=workload.count_epochs(scale),
        segments=workload.segments,
        seed=RUN_SEED,
        configs=workload.configs,
    )
    with server.session() as session:
        # Another part of the same call may have measured this workload.
        tables = (job.train, job.valid, job.models, job.selection, f"{job.selection}_summary")
        with session.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {', '.join(tables)}")
        for table, examples in zip(
            (job.train, job.valid), workload.draw_examples(scale), strict=True
        ):
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
    """Create the packed tables, replacing existing ones; return the seconds."""
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


def make_environment() -> dict[str, str]:
    """Return the environment of a contender: that of this process, with the path of the modules."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
