"""Greenplum beside PostgreSQL: three segments of either on this machine, the same rows, the same
order of visits.

It needs a Greenplum that somebody has started (see CONTRIBUTING.md for what the variable
CEREBRO_TEST_GREENPLUM_URL names). Where there is one, the report has its ratios; this tells more of
a single workload:

    PYTHONPATH=tests/support .venv/bin/python -m bench.greenplum_beside B 3
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import greenplum
from psycopg2.extensions import connection as Connection

from bench import bench_server, ours
from bench.bench_server import BenchServer
from bench.job import Job
from bench.weights import drawn
from bench.workloads import REPORT, WORKLOADS, Workload

SEGMENTS = 3
NAMES = ("PostgreSQL", "Greenplum")
SETTINGS: dict[str, Any] = {"schedule": "rotation", "workers": SEGMENTS}


@dataclass(frozen=True)
class Side:
    """One of the two servers, with the job as it stands there."""

    name: str
    server: BenchServer
    job: Job
    packing: float


@dataclass(frozen=True)
class Beside:
    """Both servers, PostgreSQL first, and the seconds of their calls, turn by turn."""

    sides: list[Side]
    turns: list[list[float]]

    @property
    def ratios(self) -> list[float]:
        """How many times as long Greenplum takes, in each turn."""
        return [greenplum_time / postgresql_time for postgresql_time, greenplum_time in self.turns]


def main() -> None:
    """Measure the workload that the command line names, as often as it says."""
    workload = WORKLOADS[sys.argv[1]]
    with (
        bench_server.start_server(print) as server,
        compare_servers(server, workload, REPORT, int(sys.argv[2])) as found,
    ):
        _tell(found, workload)


@contextmanager
def compare_servers(
    server: BenchServer, workload: Workload, scale: str, repeats: int
) -> Iterator[Beside]:
    """A workload on both servers, whose tables are there within the block; an error where no
    Greenplum is there.
    """
    if not greenplum.given():
        raise RuntimeError(greenplum.MISSING)
    workload = replace(workload, segments=SEGMENTS)
    with greenplum.database("cerebro_beside") as database:
        there = replace(server, url=database.url, superuser_url=database.superuser_url)
        weights = drawn(workload.architectures, server.folder)
        sides = [
            _loaded(name, where, workload, scale, weights)
            for name, where in zip(NAMES, (server, there), strict=True)
        ]
        _same_rows(sides)
        for side in sides:  # not counted: it times the forms of the programs
            _fit(side)
        _same_forms(sides)
        yield Beside(sides, [[_fit(side)[0] for side in sides] for _ in range(repeats)])


def _loaded(
    name: str, server: BenchServer, workload: Workload, scale: str, weights: list[bytes]
) -> Side:
    job = replace(bench_server.load(server, workload, scale, weights), settings=SETTINGS)
    with server.session() as session:
        bench_server.pack(session, job)
        return Side(name, server, job, bench_server.pack(session, job))


def _same_rows(sides: list[Side]) -> None:
    """Give PostgreSQL the packed rows of Greenplum, keys of segments included."""
    to, source = sides
    for table in (source.job.packed, source.job.packed_valid):
        with to.server.session() as session, session.cursor() as cursor:
            cursor.execute(f"TRUNCATE {table}")
        _copied(
            source,
            to,
            f"COPY {table} TO STDOUT (FORMAT binary)",
            f"COPY {table} FROM STDIN (FORMAT binary)",
        )


def _same_forms(sides: list[Side]) -> None:
    """Give Greenplum the timings of forms that PostgreSQL has found: bits depend on the form."""
    source, to = sides
    with to.server.session(superuser=True) as session, session.cursor() as cursor:
        cursor.execute("DELETE FROM cerebro.form_timing")
    _copied(source, to, "COPY cerebro.form_timing TO STDOUT", "COPY cerebro.form_timing FROM STDIN")


def _copied(source: Side, to: Side, out: str, into: str) -> None:
    with tempfile.TemporaryFile() as file:
        for side, statement in ((source, out), (to, into)):
            file.seek(0)
            with side.server.session(superuser=True) as session, session.cursor() as cursor:
                cursor.copy_expert(statement, file)


def _fit(side: Side) -> tuple[float, int]:
    """Seconds of a call in a new session, its trainers' start included; the run."""
    with side.server.session() as session:
        began = time.perf_counter()
        run_id = ours.fit(session, side.job)
        return time.perf_counter() - began, run_id


def _weights(session: Connection, job: Job) -> list[tuple[int, bytes]]:
    with session.cursor() as cursor:
        cursor.execute(f"SELECT mst_key, model_weights FROM {job.output} ORDER BY mst_key")
        return [(key, bytes(weights)) for key, weights in cursor.fetchall()]


def _moved(session: Connection, job: Job) -> list[tuple[int, int, int]]:
    """Per epoch: what the states of all visits came to in bytes, and what they should, the state of
    one config after another taken from the log too."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT epoch, sum(state_bytes)::bigint, sum(largest * n)::bigint FROM ( SELECT "
            "epoch, mst_key, sum(state_bytes) AS state_bytes, max(state_bytes) AS largest, %s AS "
            f"n FROM cerebro.visit WHERE run_id = (SELECT run_id FROM {job.output}_summary) AND "
            "status = 'completed' GROUP BY epoch, mst_key) v GROUP BY epoch ORDER BY epoch",
            (SEGMENTS,),
        )
        return [
            (int(epoch), int(moved_bytes), int(expected))
            for epoch, moved_bytes, expected in cursor.fetchall()
        ]


def _forms(session: Connection, job: Job) -> list[tuple[str, int, int]]:
    """Visits by the form of the training loop and its threads, on which bits depend."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT form, threads, count(*) FROM cerebro.visit"
            f" WHERE run_id = (SELECT run_id FROM {job.output}_summary) AND status = 'completed'"
            " GROUP BY form, threads ORDER BY form, threads"
        )
        return [(form, int(threads), int(visits)) for form, threads, visits in cursor.fetchall()]


def _tell(measured: Beside, workload: Workload) -> None:
    sides, ratios = measured.sides, measured.ratios
    print(
        f"\n{workload.key}: {workload.title}; {len(workload.configs)} configurations, {SEGMENTS} "
        "segments"
    )
    for side, times in zip(sides, zip(*measured.turns, strict=True), strict=True):
        print(
            f"  {side.name}: packing {side.packing:.2f} s; fit "
            f"{', '.join(f'{t:.2f}' for t in times)} s"
        )
    print(
        f"  Greenplum / PostgreSQL: {statistics.median(ratios):.2f} ({min(ratios):.2f} to "
        f"{max(ratios):.2f})"
    )
    found = []
    for side in sides:
        with side.server.session() as session:
            found.append(_weights(session, side.job))
            print(
                f"  {side.name}, per epoch (epoch, bytes of states, configs x segments x state):"
                f" {_moved(session, side.job)}"
            )
            print(f"  {side.name}, visits (form, threads, visits): {_forms(session, side.job)}")
    print(f"  same weights, bit for bit: {found[0] == found[1]}")


if __name__ == "__main__":
    main()
