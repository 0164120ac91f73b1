"""Measurements of single parts, each beside what it is compared with, and in turns with it.

Every function gives one number per repetition, in the unit of the table "must reach".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from bench.breakdown import Step, pieces, steps, visit_seconds
from bench.contenders import FRAMEWORKS, OURS, Attempt, Contender, attempt, process
from bench.copying import write_table
from bench.examples import Examples, flowers, numeric
from bench.job import Job
from bench.place import Place
from bench.turns import ready
from bench.workloads import REPORT, WORKLOADS, Workload, grid, perceptron

LONGEST_MILLISECONDS = 120_000
"""After this a statement that is timed is given up."""


def wide(rng: np.random.Generator, rows: int) -> Examples:
    """Rows of 1,000 numbers."""
    return rng.random((rows, 1000), dtype=np.float32), rng.integers(0, 3, size=rows).astype(np.int32)


HOPS = Workload(
    key="H",
    title="hops of states below 1 MB",
    draw=flowers,
    rows=64,
    validation=16,
    classes=3,
    small_rows=64,
    architectures=(perceptron(4, (250, 250), 3),),
    configs=grid(1, ["Adam"], [1e-3, 1e-4], [8, 16, 32, 64]),
    epochs=20,
    small_epochs=6,
)
DISK = replace(
    HOPS,
    key="K",
    title="16 configurations, 20 epochs",
    configs=grid(1, ["Adam"], [1e-3, 1e-4], [8, 16, 24, 32] * 2),
    small_epochs=20,
)
READ = Workload(
    key="R",
    title="from table to tensor",
    draw=wide,
    rows=65_536,
    validation=16,
    classes=3,
    small_rows=16_384,
    architectures=(perceptron(1000, (4,), 3),),
    configs=grid(1, ["Adam"], [1e-3], [4096]),
    epochs=1,
)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where, how large and how often; and what becomes of messages."""

    place: Place
    scale: str
    repeats: int
    say: Callable[[str], None]

    def rows(self, count: int) -> int:
        """So many in the report, a twentieth of it for trying."""
        return count if self.scale == REPORT else count // 20

    def ready(self, workload: Workload) -> Job:
        """The tables of a workload."""
        self.say(f"  {workload.title}")
        return ready(self.place, workload, self.scale)

    def trained(self, job: Job, contender: Contender = OURS[0]) -> tuple[Attempt, list[Step]]:
        """One attempt of ours, and the statements of its workers."""
        logged = self.place.logged()
        tried = attempt(self.place, job, contender, job.settings)
        if tried.result is None:
            raise RuntimeError(f"the run failed: {tried.reason}")
        return tried, steps(self.place.log_since(logged))

    def bare(self, job: Job, framework: str) -> float:
        """Seconds that the bare loops of a job take on all cores."""
        _, result, reason = process(self.place, "bench.bare", replace(job, framework=framework))
        if result is None:
            raise RuntimeError(f"the bare loops failed: {reason}")
        return float(result.more["seconds"])


def hop_seconds(bench: Bench, job: Job, tried: Attempt, found: list[Step]) -> float:
    """Time of a visit beyond what the loop over its batches took, medians over the visits of a run."""
    assert tried.result is not None
    trained = bench.place.value(
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY training_seconds) FROM cerebro.visit WHERE run_id = %s",
        tried.result.more["run_id"],
    )
    return visit_seconds(found, alone=len(job.configs) == 1) - float(trained)


def small_hops(bench: Bench) -> Iterator[float]:
    """Milliseconds for each hop beyond training, of a state below 1 MB."""
    job = bench.ready(HOPS)
    for _ in range(bench.repeats):
        tried, found = bench.trained(job)
        parts = ", ".join(f"{kind} {1000 * seconds:.2f}" for kind, seconds in pieces(found).items())
        bench.say(f"    median ms: {parts}")
        yield 1000 * hop_seconds(bench, job, tried, found)


def large_hops(bench: Bench) -> Iterator[tuple[float, float]]:
    """Of a state of 200 MB: the speed of a hop as a part of that of a logged INSERT … SELECT of the same bytes;
    and the memory of a trainer beyond that of one with a small model, in units of the state."""
    small, large = bench.ready(replace(HOPS, key="G")), bench.ready(replace(WORKLOADS["E"], key="L"))
    framework = bench.trained(small)[0].usage.trainer
    for _ in range(bench.repeats):
        tried, found = bench.trained(large)
        assert tried.result is not None
        state = tried.result.more["state_bytes"] / tried.result.more["visits"]
        inserted = insert_seconds(bench, tried.result.more["run_id"])
        yield inserted / hop_seconds(bench, large, tried, found), (tried.usage.trainer - framework) / state


def insert_seconds(bench: Bench, run_id: int) -> float:
    """Time of a logged INSERT … SELECT of the state that a run of one configuration left."""
    table = bench.place.value(
        "SELECT state_table FROM cerebro.visit WHERE run_id = %s ORDER BY visit_no DESC LIMIT 1", run_id
    )
    with bench.place.session() as session, session.cursor() as cursor:
        cursor.execute(
            f"SET synchronous_commit = off; DROP TABLE IF EXISTS state_copy; CREATE TABLE state_copy (LIKE {table});"
            "ALTER TABLE state_copy ALTER COLUMN chunk SET STORAGE EXTERNAL"
        )
        seconds = []
        for _ in range(2):  # the second time its files exist, as those of a state table do
            began = time.perf_counter()
            cursor.execute(f"TRUNCATE state_copy; INSERT INTO state_copy SELECT * FROM {table}")
            seconds.append(time.perf_counter() - began)
        cursor.execute("DROP TABLE state_copy")
    return seconds[-1]


def streaming(bench: Bench) -> Iterator[float]:
    """Time of a run that keeps no rows in memory against that of one that does."""
    job = bench.ready(replace(WORKLOADS["B"], key="S", title="streaming against cached"))
    for _ in range(bench.repeats):
        cached = bench.trained(job)[0].usage.wall
        with setting(bench.place, "cache_mb", "0"):
            yield bench.trained(job)[0].usage.wall / cached


@contextmanager
def setting(at: Place, name: str, value: str) -> Iterator[None]:
    """An administrator's setting, within the block."""
    at.value("INSERT INTO cerebro.setting VALUES (%s, %s)", name, value, superuser=True)
    yield
    at.value("DELETE FROM cerebro.setting WHERE name = %s", name, superuser=True)


def bare(key: str, times: int) -> Callable[[Bench], Iterator[float]]:
    """Time of a run of so many times the epochs of a workload, against the bare loops on the same cores: both of the
    framework whose bare loops are the fastest."""

    def measure(bench: Bench) -> Iterator[float]:
        job = bench.ready(WORKLOADS[key].longer(times))
        loops = {framework: bench.bare(job, framework) for framework in FRAMEWORKS}
        best = min(loops, key=lambda framework: loops[framework])
        ours = next(contender for contender in OURS if contender.framework == best)
        bench.trained(job, ours)  # in which the forms are timed
        for _ in range(bench.repeats):
            yield bench.trained(job, ours)[0].usage.wall / bench.bare(job, best)

    return measure


def reading(bench: Bench) -> Iterator[float]:
    """GB per second from a packed table in shared buffers to the arrays of a trainer."""
    job = replace(bench.ready(READ), settings={"workers": 1})
    count = bench.place.value(f"SELECT sum(octet_length(x) + octet_length(y)) FROM {job.packed}")
    for _ in range(bench.repeats):
        bench.place.value(f"SELECT count(md5(x)) FROM {job.packed}")
        _, found = bench.trained(job)
        yield int(count) / 1e9 / sum(step.ended - step.began for step in found if step.kind == "data")


def packing(bench: Bench) -> Iterator[float]:
    """Time of packing 1,000,000 x 64 numbers against that of CREATE TABLE AS."""
    rows, rng = bench.rows(1_000_000), np.random.default_rng(1)
    bench.say(f"  packing {rows:,} x 64")
    with bench.place.session() as session:
        write_table(
            session, "pack_rows", (rng.random((rows, 64), dtype=np.float32), np.arange(rows, dtype=np.int32) % 3)
        )
    for _ in range(bench.repeats):
        copied = timed(bench.place, "CREATE TABLE pack_copy AS SELECT * FROM pack_rows", "pack_copy")
        call = "SELECT training_preprocessor_dl('pack_rows', 'pack_out', 'y', 'x', n_segments => 2, seed => 1)"
        yield timed(bench.place, call, "pack_out, pack_out_summary") / copied
    bench.place.value("DROP TABLE pack_rows")


def predicting(bench: Bench) -> Iterator[float]:
    """Rows per second of predicting 1,000,000 rows by a small MLP, in a new session."""
    rows = bench.rows(1_000_000)
    job = bench.ready(replace(WORKLOADS["B"], key="P", rows=2000, epochs=1, configs=WORKLOADS["B"].configs[:1]))
    bench.trained(job)
    with bench.place.session() as session:
        write_table(session, "predict_rows", numeric(np.random.default_rng(2), rows))
    for _ in range(bench.repeats):
        call = (
            f"SELECT madlib_predict('{job.output}', 'predict_rows', 'id', 'x', 'predicted', 'response', mst_key => 1)"
        )
        yield rows / timed(bench.place, call, "predicted")
    bench.place.value("DROP TABLE predict_rows")


def timed(at: Place, statement: str, made: str) -> float:
    """Seconds of a statement in a new session; the tables that it makes are dropped."""
    with at.session() as session, session.cursor() as cursor:
        cursor.execute("SET statement_timeout = %s", (LONGEST_MILLISECONDS,))
        began = time.perf_counter()
        cursor.execute(statement)
        seconds = time.perf_counter() - began
        cursor.execute(f"DROP TABLE {made}")
    return seconds


def disk(bench: Bench) -> Iterator[float]:
    """Growth of the database by 20 epochs of 16 configurations, in units of all their states."""
    for number in range(bench.repeats):
        job = bench.ready(replace(DISK, key=f"K{number}"))
        tried, _ = bench.trained(job)
        assert tried.result is not None
        states = tried.result.more["state_bytes"] / tried.result.more["visits"] * len(job.configs)
        yield tried.stored / states
