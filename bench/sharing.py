"""Measure many users at once on one small machine.

The measurements are the fairness among the users, and the latency of other sessions meanwhile. A
crowd that submits at the same moment shows if all runs complete.

Each user is a role, and submits the same run; the seconds for each visit are compared. The latency
is that of the slowest twentieth and hundredth of pgbench's transactions. It is compared with that
on an idle server. It is also compared with the latency beside processes that only compute on the
trainers' cores, the least that is possible.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import psycopg2
from psycopg2.extensions import cursor as Cursor

from bench.bench_server import BenchServer, Echo, load, log_durations, pack
from bench.examples import draw_numeric
from bench.weights import draw_weights
from bench.workloads import SMALL, Workload, make_grid, make_perceptron

# Users, users of a crowd, sessions of pgbench, and its transactions a second.
USERS = 8
CROWD = 30
CLIENTS = 2
RATE = 100
# Trainers at a time in `cerebro.quota`, and cores left to others by `spare_cores`.
TRAINERS = 8
SPARE = 1
ALONE_SECONDS = 15
FLOOR_SECONDS = 30
EVERY_SECONDS = 0.5
WORK = Workload(
    key="S",
    title="the same run for each of many users",
    draw=draw_numeric,
    rows=10_000,
    validation=64,
    classes=3,
    small_rows=10_000,
    architectures=(make_perceptron(20, (200, 200), 3),),
    configs=make_grid(1, ["Adam"], [1e-3, 3e-4], [64]),
    epochs=40,
    small_epochs=40,
    segments=2,
)
COMPUTE = """
import sys
from cerebro_plpy.trainer_client.process.host_resources import trainer_cores
from cerebro_trainer import process_isolation
process_isolation.set_cpu_affinity(shared(int(sys.argv[1])))
process_isolation.lower_cpu_priority(use_thread=False)
while True:
    pass"""
"""A program that computes with the priority of a trainer, and sends nothing to the server."""
PGBENCH = Path(shutil.which("pgbench") or "/usr/lib/postgresql/15/bin/pgbench")
SET_SPARE = "SELECT cerebro.set('spare_cores', %s)"
RUNS = """
    SELECT extract(epoch FROM r.ended_at - r.started_at)::float8 / count(*), r.status
    FROM cerebro.run r JOIN cerebro.visit v USING (run_id)
    WHERE r.run_id = ANY (%s) AND v.status = 'completed' GROUP BY r.run_id, r.started_at,
        r.ended_at, r.status"""
MOST = """
    WITH edge AS (
        SELECT v.run_id, v.started_at AS at, 1 AS change FROM cerebro.visit v
        UNION ALL SELECT v.run_id, v.ended_at, -1 FROM cerebro.visit v)
    SELECT max(n.together)
    FROM (SELECT sum(e.change) OVER (ORDER BY e.at, e.change) AS together FROM edge e
        WHERE e.run_id = ANY (%s)) n"""
T = TypeVar("T")


class Latencies(NamedTuple):
    """Percentiles of the latency of transactions in milliseconds."""

    p95: float
    p99: float


class JointRuns(NamedTuple):
    """The runs that users submitted together."""

    seconds: Sequence[float]  # seconds for each visit, by run
    completed: int
    trainers: int  # largest number of trainers at work at a time
    wall: float  # seconds until all runs had ended

    @property
    def ratio(self) -> float:
        """The time of the slowest user relative to the fastest one."""
        return max(self.seconds) / min(self.seconds)


def measure_sharing(server: BenchServer, echo: Echo) -> str:
    """Return all measurements as text."""
    users = _prepare(server)
    log_durations(server, -1)  # writing them takes time
    idle_latencies, _ = _measure_latencies(server, partial(time.sleep, ALONE_SECONDS))
    echo(f"  pgbench alone: {idle_latencies.p95:.1f} ms, {idle_latencies.p99:.1f} ms")
    with _run_computations(TRAINERS, SPARE):
        compute_latencies, _ = _measure_latencies(server, partial(time.sleep, FLOOR_SECONDS))
    echo(
        f"  beside {TRAINERS} processes that compute: {compute_latencies.p95:.1f} ms, "
        f"{compute_latencies.p99:.1f} ms"
    )
    lines = [
        "| users | `spare_cores` | completed | trainers at once | slowest user / fastest | "
        "seconds in all | p95 of pgbench | p99 |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
        f"| 0 | | | | | | {idle_latencies.p95:.1f} ms | {idle_latencies.p99:.1f} ms |",
        f"| 0, {TRAINERS} processes compute | {SPARE} | | | | | {compute_latencies.p95:.1f} ms | "
        f"{compute_latencies.p99:.1f} ms |",
    ]
    server.value("INSERT INTO cerebro.quota (trainers) VALUES (%s)", TRAINERS, superuser=True)
    for count, spare in ((USERS, 0), (USERS, SPARE), (CROWD, SPARE)):
        latencies, runs = _measure_latencies(
            server, partial(_submit_together, server, users[:count], spare)
        )
        lines.append(
            f"| {count} | {spare} | {runs.completed} | {runs.trainers} | {runs.ratio:.2f} | "
            f"{runs.wall:.0f} | {latencies.p95:.1f} ms | {latencies.p99:.1f} ms |"
        )
        echo(f"  {lines[-1]}")
    log_durations(server, 0)
    return "\n".join(lines)


def _prepare(server: BenchServer) -> list[str]:
    """Create a packed table that all may read, and roles with schemas; return the roles."""
    job = load(server, WORK, SMALL, draw_weights(WORK.architectures, server.folder))
    users = [f"user_{number}" for number in range(CROWD)]
    with server.session() as session:
        pack(session, job)
    with server.session(superuser=True) as session, session.cursor() as cursor:
        cursor.execute(
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC; GRANT USAGE ON SCHEMA madlib "
            "TO PUBLIC"
        )
        for user in users:
            cursor.execute(f"CREATE ROLE {user} LOGIN; CREATE SCHEMA AUTHORIZATION {user}")
            cursor.execute("SELECT cerebro.grant_usage(%s::regrole)", (user,))
    subprocess.run([PGBENCH, "-i", "-q", server.superuser_url], check=True, capture_output=True)
    return users


def _submit_together(server: BenchServer, users: Sequence[str], spare: int) -> JointRuns:
    """Let all users submit at the same moment, and wait until their runs have ended."""
    server.value(SET_SPARE, spare, superuser=True)
    began = time.perf_counter()
    gate = threading.Barrier(len(users))

    def submit(user: str) -> int:
        session = psycopg2.connect(server.url.replace("//cerebro@", f"//{user}@", 1))
        session.autocommit = True
        with session.cursor() as cursor:
            gate.wait()
            cursor.execute(
                "SELECT cerebro.submit('public.s_packed', %s, 'public.s_configs', %s, seed => 1)",
                (f"{user}.model_{spare}_{len(users)}", WORK.epochs),
            )
            (run,) = cursor.fetchone()  # type: ignore[misc]
        session.close()
        return int(run)

    with ThreadPoolExecutor(len(users)) as pool:
        runs = list(pool.map(submit, users))
    with server.session(superuser=True) as session, session.cursor() as cursor:
        while _has_running(cursor, runs):
            time.sleep(EVERY_SECONDS)
        wall = time.perf_counter() - began
        cursor.execute(RUNS, (runs,))
        rows = cursor.fetchall()
    most = int(server.value(MOST, runs, superuser=True))
    completed = [seconds for seconds, status in rows if status == "completed"]
    return JointRuns(completed, len(completed), most, wall)


def _has_running(cursor: Cursor, runs: Sequence[int]) -> bool:
    """Return whether some runs have not ended."""
    cursor.execute(
        "SELECT true FROM cerebro.run WHERE run_id = ANY (%s) AND status IN ('running', 'queued') "
        "LIMIT 1",
        (runs,),
    )
    return cursor.fetchone() is not None


def _measure_latencies(server: BenchServer, meanwhile: Callable[[], T]) -> tuple[Latencies, T]:
    """Return the latencies of pgbench during a call, and the result of the call."""
    with tempfile.TemporaryDirectory() as folder, _run_pgbench(server, folder):
        result = meanwhile()
        durations = sorted(
            int(line.split()[2])
            for file in Path(folder).iterdir()
            for line in file.read_text().splitlines()[:-1]
        )
    return Latencies(
        *(durations[int(share * len(durations))] / 1000 for share in (0.95, 0.99))
    ), result


@contextmanager
def _run_computations(processes: int, spare: int) -> Iterator[None]:
    """Run processes that compute on the trainers' cores until the block ends."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", COMPUTE, str(spare)]
    started = [
        subprocess.Popen(command, env=environment, start_new_session=True) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def _run_pgbench(server: BenchServer, folder: str) -> Iterator[None]:
    """Run pgbench, which logs a line for each transaction, until the block ends."""
    command = [
        str(PGBENCH),
        "-n",
        "-c",
        str(CLIENTS),
        "-R",
        str(RATE),
        "-T",
        "86400",
        "-l",
        server.superuser_url,
    ]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            process.terminate()
