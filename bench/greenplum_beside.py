"""Compare Greenplum with PostgreSQL: three segments on this machine, the same rows and visit order.

It needs a running Greenplum; see CONTRIBUTING.md for the variable CEREBRO_TEST_GREENPLUM_URL. The
report contains the ratios if there is one. This command prints more about a single workload:

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
from bench.weights import draw_weights
from bench.workloads import REPORT, WORKLOADS, Workload

SEGMENTS = 3
NAMES = ("PostgreSQL", "Greenplum")
SETTINGS: dict[str, Any] = {"schedule": "rotation", "workers": SEGMENTS}


@dataclass(frozen=True)
class Side:
    """One of the two servers, with its job."""

    name: str
    server: BenchServer
    job: Job
    packing: float


@dataclass(frozen=True)
class Comparison:
    """Both servers, PostgreSQL first, and the seconds of their calls by turn."""

    sides: list[Side]
    turns: list[list[float]]

    @property
    def ratios(self) -> list[float]:
        """The time of Greenplum relative to that of PostgreSQL in each turn."""
        return [greenplum_time / postgresql_time for postgresql_time, greenplum_time in self.turns]


def main() -> None:
    """Measure the workload of the command line, in the given number of turns."""
    workload = WORKLOADS[sys.argv[1]]
    with (
        bench_server.start_server(print) as server,
        compare_servers(server, workload, REPORT, int(sys.argv[2])) as comparison,
    ):
        _print_comparison(comparison, workload)


@contextmanager
def compare_servers(
    server: BenchServer, workload: Workload, scale: str, repeats: int
) -> Iterator[Comparison]:
    """Yield the comparison of a workload on both servers, whose tables exist within the block.

    Raises:
        RuntimeError: there is no Greenplum.
    """
    if not greenplum.given():
        raise RuntimeError(greenplum.MISSING)
    workload = replace(workload, segments=SEGMENTS)
    with greenplum.database("cerebro_beside") as database:
        greenplum_server = replace(server, url=database.url, superuser_url=database.superuser_url)
        weights = draw_weights(workload.architectures, server.folder)
        sides = [
            _load_side(name, side_server, workload, scale, weights)
            for name, side_server in zip(NAMES, (server, greenplum_server), strict=True)
        ]
        _copy_rows(sides)
        for side in sides:  # not counted: it times the forms of the programs
            _fit(side)
        _copy_form_timings(sides)
        yield Comparison(sides, [[_fit(side)[0] for side in sides] for _ in range(repeats)])


def _load_side(
    name: str, server: BenchServer, workload: Workload, scale: str, weights: list[bytes]
) -> Side:
    job = replace(bench_server.load(server, workload, scale, weights), settings=SETTINGS)
    with server.session() as session:
        bench_server.pack(session, job)
        return Side(name, server, job, bench_server.pack(session, job))


def _copy_rows(sides: list[Side]) -> None:
    """Copy the packed rows of Greenplum to PostgreSQL, with the keys of segments."""
    target, source = sides
    for table in (source.job.packed, source.job.packed_valid):
        with target.server.session() as session, session.cursor() as cursor:
            cursor.execute(f"TRUNCATE {table}")
        _copy_table(
            source,
            target,
            f"COPY {table} TO STDOUT (FORMAT binary)",
            f"COPY {table} FROM STDIN (FORMAT binary)",
        )


def _copy_form_timings(sides: list[Side]) -> None:
    """Copy the form timings of PostgreSQL to Greenplum, because bits depend on the form."""
    source, target = sides
    with target.server.session(superuser=True) as session, session.cursor() as cursor:
        cursor.execute("DELETE FROM cerebro.form_timing")
    _copy_table(
        source, target, "COPY cerebro.form_timing TO STDOUT", "COPY cerebro.form_timing FROM STDIN"
    )


def _copy_table(source: Side, target: Side, out: str, into: str) -> None:
    with tempfile.TemporaryFile() as file:
        for side, statement in ((source, out), (target, into)):
            file.seek(0)
            with side.server.session(superuser=True) as session, session.cursor() as cursor:
                cursor.copy_expert(statement, file)


def _fit(side: Side) -> tuple[float, int]:
    """Return the seconds of a call in a new session, with its trainers' start, and the run's id."""
    with side.server.session() as session:
        began = time.perf_counter()
        run_id = ours.fit(session, side.job)
        return time.perf_counter() - began, run_id


def _read_weights(session: Connection, job: Job) -> list[tuple[int, bytes]]:
    with session.cursor() as cursor:
        cursor.execute(f"SELECT mst_key, model_weights FROM {job.output} ORDER BY mst_key")
        return [(key, bytes(weights)) for key, weights in cursor.fetchall()]


def _sum_state_bytes(session: Connection, job: Job) -> list[tuple[int, int, int]]:
    """Return the epochs with the bytes of all visits' states, as logged and as expected."""
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


def _count_forms(session: Connection, job: Job) -> list[tuple[str, int, int]]:
    """Return the number of visits by form and threads, on which bits depend."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT form, threads, count(*) FROM cerebro.visit"
            f" WHERE run_id = (SELECT run_id FROM {job.output}_summary) AND status = 'completed'"
            " GROUP BY form, threads ORDER BY form, threads"
        )
        return [(form, int(threads), int(visits)) for form, threads, visits in cursor.fetchall()]


def _print_comparison(measured: Comparison, workload: Workload) -> None:
    sides = measured.sides
    ratios = measured.ratios
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
    weights = []
    for side in sides:
        with side.server.session() as session:
            weights.append(_read_weights(session, side.job))
            print(
                f"  {side.name}, per epoch (epoch, bytes of states, configs x segments x state):"
                f" {_sum_state_bytes(session, side.job)}"
            )
            print(
                f"  {side.name}, visits (form, threads, visits): {_count_forms(session, side.job)}"
            )
    print(f"  same weights, bit for bit: {weights[0] == weights[1]}")


if __name__ == "__main__":
    main()
