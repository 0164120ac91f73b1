"""Measurements of single parts, each beside what it is compared with, and in turns with it.

Every function gives, for each repetition, the numbers of its rows of the table "must reach", in
their units.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench import greenplum_beside, measure, ours, trainers
from bench.bench_server import BenchServer
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
from bench.examples import flowers, numeric
from bench.job import Job
from bench.trainers import TrainerKind, with_kept_trainers, with_new_trainers
from bench.turns import prepare_job
from bench.workloads import REPORT, WORKLOADS, Workload, grid, perceptron

LONGEST_MILLISECONDS = 120_000
"""After this a statement that is timed is given up."""
SHORTEST_VISIT, LARGEST_STATE = 0.05, 1_000_000
"""Of visits that are to keep all workers busy: seconds of training, and bytes."""
PREDICTED_ROWS = 100
MB = 1_000_000
Numbers = Iterator[Sequence[float]]

FULL = Workload(
    key="U",
    title="visits of at least 50 ms, states below 1 MB",
    draw=numeric,
    rows=98_304,
    validation=64,
    classes=3,
    small_rows=98_304,
    architectures=(perceptron(20, (250, 250), 3),),
    configs=grid(1, ["Adam"], [3e-3, 1e-3, 3e-4, 1e-4], [16, 32, 64, 128]),
    epochs=6,
    small_epochs=3,
    segments=4,
)
LARGE = Workload(
    key="L",
    title="states of 100 MB, more configurations than workers",
    draw=flowers,
    rows=64,
    validation=16,
    classes=3,
    small_rows=64,
    architectures=(perceptron(4, (2880, 2880), 3),),
    configs=grid(1, ["Adam"], [1e-3, 3e-4, 1e-4, 3e-5], [32]),
    epochs=3,
    small_epochs=2,
)
TINY = replace(
    WORKLOADS["F"], key="G", title="a trainer with a tiny model", epochs=60, small_epochs=60
)
"""For long enough that its memory is looked at."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where, how large and how often; and what becomes of messages."""

    server: BenchServer
    scale: str
    repeats: int
    echo: Callable[[str], None]

    def rows(self, count: int) -> int:
        """So many in the report, a twentieth of it for trying."""
        return count if self.scale == REPORT else count // 20

    def prepare_job(self, workload: Workload) -> Job:
        """The tables of a workload."""
        self.echo(f"  {workload.title}")
        return prepare_job(self.server, workload, self.scale)

    def trained(self, job: Job, contender: Contender = OURS[0]) -> Attempt:
        """One attempt of ours."""
        attempt = run_attempt(self.server, job, contender, job.settings)
        if attempt.result is None:
            raise RuntimeError(f"the run failed: {attempt.reason}")
        return attempt

    def bare(self, job: Job, framework: str) -> Loops:
        """The bare loops of a job."""
        loops, reason = run_bare_loops(self.server, job, framework)
        if loops is None:
            raise RuntimeError(f"the bare loops failed: {reason}")
        return loops

    def fastest(self, job: Job) -> Contender:
        """Ours with the framework whose bare loops are the fastest, after a run in which the forms
        were timed.
        """
        loops = {framework: self.bare(job, framework).seconds for framework in FRAMEWORKS}
        best = min(loops, key=lambda framework: loops[framework])
        contender = next(contender for contender in OURS if contender.framework == best)
        self.trained(job, contender)
        return contender


def whole_job(key: str, times: int, *ways: TrainerKind) -> Callable[[Bench], Numbers]:
    """Time of a run of so many times the epochs of a workload, against the bare loops on the same
    cores.
    """

    def measure_job(bench: Bench) -> Numbers:
        workload = WORKLOADS[key].longer(times)
        job = bench.prepare_job(workload)
        contender = bench.fastest(job)
        for _ in range(bench.repeats):
            bare = bench.bare(job, contender.framework).seconds
            walls = [
                way(bench.server, lambda: bench.trained(job, contender).usage.wall) for way in ways
            ]
            bench.echo(
                f"    {contender.name}: {', '.join(f'{wall:.2f}' for wall in walls)} s; bare "
                f"{bare:.2f} s"
            )
            yield [wall / bare for wall in walls]

    return measure_job


def fullness(bench: Bench) -> Numbers:
    """What part of the workers' time, from the first visit of epoch 2 on, the bare loops take for
    the same visits.
    """
    job = bench.prepare_job(FULL)
    contender = bench.fastest(job)
    for _ in range(bench.repeats):
        first, *later = bench.bare(job, contender.framework).epochs
        attempt = bench.trained(job, contender)
        assert attempt.result is not None
        run_id = attempt.result.more["run_id"]
        spent, seconds = (
            _later_epochs(bench, run_id),
            sum(later) + first * _late_part(bench, run_id),
        )
        bench.echo(f"    {contender.name}: {spent:.2f} s of all workers; bare {seconds:.2f} s")
        yield [seconds / spent]


def _later_epochs(bench: Bench, run_id: int) -> float:
    """Seconds of all workers together, from the first visit of epoch 2 to the end of the last
    visit; an error where visits are not as they should be."""
    with bench.server.session() as session, session.cursor() as cursor:
        cursor.execute(
            "SELECT count(DISTINCT worker_pid) * extract(epoch FROM max(ended_at) - "
            "min(started_at))::float8, max(state_bytes) FROM cerebro.visit WHERE run_id = %s AND "
            "epoch > 1 AND status = 'completed'",
            (run_id,),
        )
        spent, state = cursor.fetchone()  # type: ignore[misc]
        cursor.execute(
            "SELECT min(seconds) FROM (SELECT avg(training_seconds) AS seconds FROM cerebro.visit"
            " WHERE run_id = %s AND epoch > 1 AND status = 'completed' GROUP BY mst_key) c",
            (run_id,),
        )
        (shortest,) = cursor.fetchone()  # type: ignore[misc]
    bench.echo(f"    visits from {1000 * shortest:.0f} ms on, states of {state:,} bytes")
    if shortest < SHORTEST_VISIT or state > LARGEST_STATE:
        raise RuntimeError(
            f"visits took {1000 * shortest:.0f} ms with states of {state} bytes;"
            f" expected at least {1000 * SHORTEST_VISIT:.0f} ms and at most {LARGEST_STATE} bytes"
        )
    return float(spent)


def _late_part(bench: Bench, run_id: int) -> float:
    """What part of epoch 1 is made once epoch 2 of any configuration has begun, by what visits take
    later on.
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


def first_fit(bench: Bench) -> Numbers:
    """Seconds of a fit in a new session beyond what the bare loops take: by kept trainers, and by
    forks.
    """
    job = bench.prepare_job(replace(WORKLOADS["F"], key="N"))
    job = replace(job, framework=bench.fastest(job).framework)

    def fit() -> float:
        began = time.perf_counter()
        with bench.server.session() as session:
            ours.fit(session, job)
            return time.perf_counter() - began

    for _ in range(bench.repeats):
        bare = bench.bare(job, job.framework).seconds
        walls = [way(bench.server, fit) for way in (with_kept_trainers, with_new_trainers)]
        bench.echo(
            f"    {job.framework}: {', '.join(f'{wall:.2f}' for wall in walls)} s; bare {bare:.2f} "
            "s"
        )
        yield [wall - bare for wall in walls]


def predicting(bench: Bench) -> Numbers:
    """Seconds from connecting to the end of a prediction of a hundred rows: by kept trainers, and
    by forks.
    """
    workload = WORKLOADS["B"]
    job = bench.prepare_job(
        replace(
            workload, key="P", rows=2000, small_rows=2000, epochs=1, configs=workload.configs[:1]
        )
    )
    bench.trained(job)
    with bench.server.session() as session:
        write_table(session, "predict_rows", numeric(np.random.default_rng(2), PREDICTED_ROWS))
    call = (
        f"SELECT madlib_predict('{job.output}', 'predict_rows', 'id', 'x', 'predicted', "
        "'response', mst_key => 1)"
    )
    for _ in range(bench.repeats):
        ways = (with_kept_trainers, with_new_trainers)
        yield [
            way(bench.server, lambda: timed(bench.server, call, "predicted", connecting=True))
            for way in ways
        ]
    bench.server.value("DROP TABLE predict_rows")


def further_trainer(bench: Bench) -> Numbers:
    """MB that a second trainer shares with no other process before it has data; of the framework
    where it is more.
    """
    bench.echo("  a further trainer without data")
    with trainers.forbid_kept_trainers(bench.server):
        for _ in range(bench.repeats):
            own = {framework: _own_megabytes(bench, framework) for framework in FRAMEWORKS}
            bench.echo(
                f"    MB: {', '.join(f'{framework} {size:.1f}' for framework, size in own.items())}"
            )
            yield [max(own.values())]


def _own_megabytes(bench: Bench, framework: str) -> float:
    request = json.dumps({"framework": framework, "trainers": 2})
    with bench.server.session() as first, bench.server.session() as second:
        for session in (first, second):
            with session.cursor() as cursor:
                cursor.execute("SELECT cerebro.trainer_start(%s)", (request,))
        backend = second.info.backend_pid
        own = [
            measure.measure_private_memory(process.pid)
            for process in trainers.list_trainers(bench.server)
            if process.parent == backend
        ]
    if len(own) != 1 or not own[0]:
        raise RuntimeError(
            f"the private pages of a trainer cannot be read: {own} bytes; root can read them"
        )
    return own[0] / MB


def memory_in_states(bench: Bench) -> Numbers:
    """Memory of a trainer beyond that of one with a tiny model, in units of a large state."""
    tiny, large = bench.prepare_job(TINY), bench.prepare_job(LARGE)
    with trainers.forbid_kept_trainers(bench.server):  # what another session took does not count
        framework = bench.trained(tiny).usage.trainer
        for _ in range(bench.repeats):
            attempt = bench.trained(large)
            assert attempt.result is not None
            state = attempt.result.more["largest_state"]
            bench.echo(
                f"    {attempt.usage.trainer:,} bytes, {framework:,} with a tiny model; "
                f"a state has {state:,.0f}"
            )
            yield [(attempt.usage.trainer - framework) / state]


def packing(bench: Bench) -> Numbers:
    """Time of packing 1,000,000 x 64 numbers against that of CREATE TABLE AS."""
    rows, rng = bench.rows(1_000_000), np.random.default_rng(1)
    bench.echo(f"  packing {rows:,} x 64")
    with bench.server.session() as session:
        write_table(
            session,
            "pack_rows",
            (rng.random((rows, 64), dtype=np.float32), np.arange(rows, dtype=np.int32) % 3),
        )
    for _ in range(bench.repeats):
        copied = timed(
            bench.server, "CREATE TABLE pack_copy AS SELECT * FROM pack_rows", "pack_copy"
        )
        call = (
            "SELECT training_preprocessor_dl('pack_rows', 'pack_out', 'y', 'x', n_segments => 2, "
            "seed => 1)"
        )
        yield [timed(bench.server, call, "pack_out, pack_out_summary") / copied]
    bench.server.value("DROP TABLE pack_rows")


def timed(server: BenchServer, statement: str, made: str, connecting: bool = False) -> float:
    """Seconds of a statement in a new session, and of opening it where that counts; the tables that
    it makes are dropped."""
    connects = time.perf_counter()
    with server.session() as session, session.cursor() as cursor:
        cursor.execute("SET statement_timeout = %s", (LONGEST_MILLISECONDS,))
        began = connects if connecting else time.perf_counter()
        cursor.execute(statement)
        seconds = time.perf_counter() - began
        cursor.execute(f"DROP TABLE {made}")
    return seconds


def beside_greenplum(key: str) -> Callable[[Bench], Numbers]:
    """Time of a whole job on Greenplum against that on PostgreSQL."""

    def measure_job(bench: Bench) -> Numbers:
        workload = replace(WORKLOADS[key], key=f"{key}G")
        bench.echo(f"  {workload.title}, on Greenplum")
        with greenplum_beside.compare_servers(
            bench.server, workload, bench.scale, bench.repeats
        ) as found:
            yield from ([ratio] for ratio in found.ratios)

    return measure_job
