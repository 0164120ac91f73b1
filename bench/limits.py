"""Measure single parts of the product, in turns with their references.

Every function yields, for each repetition, the numbers of its rows of the table "must reach", in
their units.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench import greenplum_beside, measure, ours, trainers
from bench.bench_server import BenchServer, Echo
from bench.contenders import (
    FRAMEWORKS,
    OURS,
    Attempt,
    Contender,
    Loops,
    run_attempt,
    run_bare_loops,
)
from bench.copying import write_table
from bench.examples import draw_flowers, draw_numeric
from bench.job import Job
from bench.trainers import TrainerKind, with_kept_trainers, with_new_trainers
from bench.turns import prepare_job
from bench.workloads import REPORT, WORKLOADS, Workload, make_grid, make_perceptron

LONGEST_MILLISECONDS = 120_000
"""Time limit of a timed statement."""
MIN_VISIT_SECONDS = 0.05
MAX_STATE_BYTES = 1_000_000
"""Visits keep all workers busy if they take at least this time, with states of at most this size.
"""
PREDICTED_ROWS = 100
MB = 1_000_000
Numbers = Iterator[Sequence[float]]

FULL = Workload(
    key="U",
    title="visits of at least 50 ms, states below 1 MB",
    draw=draw_numeric,
    rows=98_304,
    validation=64,
    classes=3,
    small_rows=98_304,
    architectures=(make_perceptron(20, (250, 250), 3),),
    configs=make_grid(1, ["Adam"], [3e-3, 1e-3, 3e-4, 1e-4], [16, 32, 64, 128]),
    epochs=6,
    small_epochs=3,
    segments=4,
)
LARGE = Workload(
    key="L",
    title="states of 100 MB, more configurations than workers",
    draw=draw_flowers,
    rows=64,
    validation=16,
    classes=3,
    small_rows=64,
    architectures=(make_perceptron(4, (2880, 2880), 3),),
    configs=make_grid(1, ["Adam"], [1e-3, 3e-4, 1e-4, 3e-5], [32]),
    epochs=3,
    small_epochs=2,
)
TINY = replace(
    WORKLOADS["F"], key="G", title="a trainer with a tiny model", epochs=60, small_epochs=60
)
"""A job that is long enough for a sample of the trainer's memory."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The server, the scale, the number of repetitions and the output of the measurements."""

    server: BenchServer
    scale: str
    repeats: int
    echo: Echo

    def count_rows(self, count: int) -> int:
        """Return the number of rows at the scale: a twentieth at the small one."""
        return count if self.scale == REPORT else count // 20

    def prepare(self, workload: Workload) -> Job:
        """Create the tables of a workload; return its job."""
        self.echo(f"  {workload.title}")
        return prepare_job(self.server, workload, self.scale)

    def train(self, job: Job, contender: Contender = OURS[0]) -> Attempt:
        """Return a successful attempt of ours."""
        attempt = run_attempt(self.server, job, contender, job.settings)
        if attempt.result is None:
            raise RuntimeError(f"the run failed: {attempt.reason}")
        return attempt

    def run_bare_loops(self, job: Job, framework: str) -> Loops:
        """Return the times of the bare loops of a job."""
        loops, reason = run_bare_loops(self.server, job, framework)
        if loops is None:
            raise RuntimeError(f"the bare loops failed: {reason}")
        return loops

    def find_fastest(self, job: Job) -> Contender:
        """Return ours with the framework of the fastest bare loops; a run of it times the forms."""
        loops = {framework: self.run_bare_loops(job, framework).seconds for framework in FRAMEWORKS}
        best = min(loops, key=lambda framework: loops[framework])
        contender = next(contender for contender in OURS if contender.framework == best)
        self.train(job, contender)
        return contender


def compare_job(key: str, times: int, *ways: TrainerKind) -> Callable[[Bench], Numbers]:
    """Return a measurement of a run's time relative to the bare loops on the same cores.

    Args:
        times: factor for the epochs of the workload.
    """

    def measure_job(bench: Bench) -> Numbers:
        workload = WORKLOADS[key].extend_epochs(times)
        job = bench.prepare(workload)
        contender = bench.find_fastest(job)
        for _ in range(bench.repeats):
            bare = bench.run_bare_loops(job, contender.framework).seconds
            walls = [
                way(bench.server, lambda: bench.train(job, contender).usage.wall) for way in ways
            ]
            bench.echo(
                f"    {contender.name}: {', '.join(f'{wall:.2f}' for wall in walls)} s; bare "
                f"{bare:.2f} s"
            )
            yield [wall / bare for wall in walls]

    return measure_job


def measure_fullness(bench: Bench) -> Numbers:
    """Measure the time of the bare loops relative to the workers' time for the same visits.

    It counts from the first visit of epoch 2 on.
    """
    job = bench.prepare(FULL)
    contender = bench.find_fastest(job)
    for _ in range(bench.repeats):
        first, *later_epochs = bench.run_bare_loops(job, contender.framework).epochs
        attempt = bench.train(job, contender)
        assert attempt.result is not None
        run_id = attempt.result.more["run_id"]
        worker_seconds = _measure_later_epochs(bench, run_id)
        seconds = sum(later_epochs) + first * _measure_late_share(bench, run_id)
        bench.echo(
            f"    {contender.name}: {worker_seconds:.2f} s of all workers; bare {seconds:.2f} s"
        )
        yield [seconds / worker_seconds]


def _measure_later_epochs(bench: Bench, run_id: int) -> float:
    """Return the seconds of all workers from the first visit of epoch 2 to the end of the last one.

    Raises:
        RuntimeError: visits are too short, or states too large.
    """
    with bench.server.session() as session, session.cursor() as cursor:
        cursor.execute(
            "SELECT count(DISTINCT worker_pid) * extract(epoch FROM max(ended_at) - "
            "min(started_at))::float8, max(state_bytes) FROM cerebro.visit WHERE run_id = %s AND "
            "epoch > 1 AND status = 'completed'",
            (run_id,),
        )
        worker_seconds, state = cursor.fetchone()  # type: ignore[misc]
        cursor.execute(
            "SELECT min(seconds) FROM (SELECT avg(training_seconds) AS seconds FROM cerebro.visit"
            " WHERE run_id = %s AND epoch > 1 AND status = 'completed' GROUP BY mst_key) c",
            (run_id,),
        )
        (shortest,) = cursor.fetchone()  # type: ignore[misc]
    bench.echo(f"    visits from {1000 * shortest:.0f} ms on, states of {state:,} bytes")
    if shortest < MIN_VISIT_SECONDS or state > MAX_STATE_BYTES:
        raise RuntimeError(
            f"visits took {1000 * shortest:.0f} ms with states of {state} bytes;"
            f" expected at least {1000 * MIN_VISIT_SECONDS:.0f} ms and at most {MAX_STATE_BYTES}"
            " bytes"
        )
    return float(worker_seconds)


def _measure_late_share(bench: Bench, run_id: int) -> float:
    """Return the share of epoch 1 that is trained after the first visit of epoch 2.

    Visits count with their mean times in later epochs.
    """
    with bench.server.session() as session, session.cursor() as cursor:
        cursor.execute(
            """
            WITH logged AS (SELECT * FROM cerebro.visit WHERE run_id = %s AND status = 'completed'),
                 later AS (SELECT * FROM logged WHERE epoch > 1),
                 usual AS (SELECT mst_key, avg(training_seconds) AS seconds FROM later
                     GROUP BY mst_key)
            SELECT coalesce(sum(u.seconds) FILTER (
                       WHERE v.started_at >= (SELECT min(started_at) FROM later)),
                           0) / sum(u.seconds)
            FROM logged v JOIN usual u USING (mst_key) WHERE v.epoch = 1""",
            (run_id,),
        )
        (part,) = cursor.fetchone()  # type: ignore[misc]
    return float(part)


def measure_first_fit(bench: Bench) -> Numbers:
    """Measure the seconds of a fit in a new session beyond those of the bare loops.

    The first number is for idle trainers, the second one for new trainers.
    """
    job = bench.prepare(replace(WORKLOADS["F"], key="N"))
    job = replace(job, framework=bench.find_fastest(job).framework)

    def fit() -> float:
        began = time.perf_counter()
        with bench.server.session() as session:
            ours.fit(session, job)
            return time.perf_counter() - began

    for _ in range(bench.repeats):
        bare = bench.run_bare_loops(job, job.framework).seconds
        walls = [way(bench.server, fit) for way in (with_kept_trainers, with_new_trainers)]
        bench.echo(
            f"    {job.framework}: {', '.join(f'{wall:.2f}' for wall in walls)} s; bare {bare:.2f} "
            "s"
        )
        yield [wall - bare for wall in walls]


def measure_predicting(bench: Bench) -> Numbers:
    """Measure the seconds from connecting to the end of a prediction of a hundred rows.

    The first number is for idle trainers, the second one for new trainers.
    """
    workload = WORKLOADS["B"]
    job = bench.prepare(
        replace(
            workload, key="P", rows=2000, small_rows=2000, epochs=1, configs=workload.configs[:1]
        )
    )
    bench.train(job)
    with bench.server.session() as session:
        write_table(session, "predict_rows", draw_numeric(np.random.default_rng(2), PREDICTED_ROWS))
    call = (
        f"SELECT madlib_predict('{job.output}', 'predict_rows', 'id', 'x', 'predicted', "
        "'response', mst_key => 1)"
    )
    for _ in range(bench.repeats):
        ways = (with_kept_trainers, with_new_trainers)
        yield [
            way(
                bench.server,
                lambda: time_statement(bench.server, call, "predicted", connecting=True),
            )
            for way in ways
        ]
    bench.server.value("DROP TABLE predict_rows")


def measure_further_trainer(bench: Bench) -> Numbers:
    """Measure the private MB of a second trainer without data, with the worse framework."""
    bench.echo("  a further trainer without data")
    with trainers.forbid_kept_trainers(bench.server):
        for _ in range(bench.repeats):
            private = {
                framework: _measure_private_megabytes(bench, framework) for framework in FRAMEWORKS
            }
            sizes = [f"{framework} {size:.1f}" for framework, size in private.items()]
            bench.echo(f"    MB: {', '.join(sizes)}")
            yield [max(private.values())]


def _measure_private_megabytes(bench: Bench, framework: str) -> float:
    request = json.dumps({"framework": framework, "trainers": 2})
    with bench.server.session() as first, bench.server.session() as second:
        for session in (first, second):
            with session.cursor() as cursor:
                cursor.execute("SELECT cerebro_internal.trainer_start(%s)", (request,))
        backend = second.info.backend_pid
        private = [
            measure.measure_private_memory(process.pid)
            for process in trainers.list_trainers(bench.server)
            if process.parent == backend
        ]
    if len(private) != 1 or not private[0]:
        raise RuntimeError(
            f"the private pages of a trainer cannot be read: {private} bytes; root can read them"
        )
    return private[0] / MB


def measure_memory(bench: Bench) -> Numbers:
    """Measure the memory of a trainer beyond that with a tiny model, in units of a state."""
    tiny = bench.prepare(TINY)
    large = bench.prepare(LARGE)
    with trainers.forbid_kept_trainers(bench.server):  # what another session took does not count
        framework = bench.train(tiny).usage.trainer
        for _ in range(bench.repeats):
            attempt = bench.train(large)
            assert attempt.result is not None
            state = attempt.result.more["largest_state"]
            bench.echo(
                f"    {attempt.usage.trainer:,} bytes, {framework:,} with a tiny model; "
                f"a state has {state:,.0f}"
            )
            yield [(attempt.usage.trainer - framework) / state]


def measure_packing(bench: Bench) -> Numbers:
    """Measure the time of packing 1,000,000 x 64 numbers relative to CREATE TABLE AS."""
    rows = bench.count_rows(1_000_000)
    rng = np.random.default_rng(1)
    bench.echo(f"  packing {rows:,} x 64")
    with bench.server.session() as session:
        write_table(
            session,
            "pack_rows",
            (rng.random((rows, 64), dtype=np.float32), np.arange(rows, dtype=np.int32) % 3),
        )
    for _ in range(bench.repeats):
        copied = time_statement(
            bench.server, "CREATE TABLE pack_copy AS SELECT * FROM pack_rows", "pack_copy"
        )
        call = (
            "SELECT training_preprocessor_dl('pack_rows', 'pack_out', 'y', 'x', n_segments => 2, "
            "seed => 1)"
        )
        yield [time_statement(bench.server, call, "pack_out, pack_out_summary") / copied]
    bench.server.value("DROP TABLE pack_rows")


def time_statement(
    server: BenchServer, statement: str, tables: str, connecting: bool = False
) -> float:
    """Return the seconds of a statement in a new session; drop the tables that it creates.

    Args:
        connecting: include the time of opening the session.
    """
    connects = time.perf_counter()
    with server.session() as session, session.cursor() as cursor:
        cursor.execute("SET statement_timeout = %s", (LONGEST_MILLISECONDS,))
        began = connects if connecting else time.perf_counter()
        cursor.execute(statement)
        seconds = time.perf_counter() - began
        cursor.execute(f"DROP TABLE {tables}")
    return seconds


def compare_greenplum(key: str) -> Callable[[Bench], Numbers]:
    """Return a measurement of a job's time on Greenplum relative to PostgreSQL."""

    def measure_job(bench: Bench) -> Numbers:
        workload = replace(WORKLOADS[key], key=f"{key}G")
        bench.echo(f"  {workload.title}, on Greenplum")
        with greenplum_beside.compare_servers(
            bench.server, workload, bench.scale, bench.repeats
        ) as comparison:
            yield from ([ratio] for ratio in comparison.ratios)

    return measure_job
