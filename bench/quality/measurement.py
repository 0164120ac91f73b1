"""Measure the attempts that a file of results lacks, one after another."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from bench import bench_server, trainers
from bench.bench_server import BenchServer, Echo
from bench.quality.contenders import OURS, Attempt, Contender, list_contenders, run_attempt
from bench.quality.frames import write_frame
from bench.quality.results import Key, Result, append_result, read_results
from bench.quality.splits import split_rows
from bench.quality.task import CLASSIFICATION, Task, Values
from bench.real_tables import TABLES, RealTable
from bench.rivals import score
from bench.seeds.environments import NotInstalled

SPIN = "while True: pass"
WARM_UP = """
    SELECT count(*) FROM cerebro.train('flowers', 'species', models => '{linear}', configs => 1,
        epochs => 1, ensemble => 1)"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The attempts of a call."""

    tables: Sequence[str]
    contenders: Sequence[str]
    seeds: int
    seconds: float
    busy: int = 0
    again: Sequence[str] = ()  # contenders that are measured again


@dataclass(frozen=True, kw_only=True)
class Example:
    """A table with the training and test rows of a seed."""

    name: str
    seed: int
    rows: int
    train: pandas.DataFrame
    test: pandas.DataFrame

    @property
    def table(self) -> RealTable:
        """The description of the table."""
        return TABLES[self.name]

    @property
    def targets(self) -> Values:
        """The targets of the training rows."""
        return np.asarray(self.train[self.table.target])

    def score(self, predictions: Sequence[Any]) -> float:
        """Return the score of predictions for the test rows."""
        truth = self.test[self.table.target].to_numpy()
        predicted = np.asarray(predictions)
        if self.table.task == CLASSIFICATION:
            predicted = predicted.astype(str)
        return score(self.table.task, truth.astype(predicted.dtype), predicted)

    def score_constant(self) -> float:
        """Return the score of the best constant by the training rows."""
        targets = self.targets
        is_class = self.table.task == CLASSIFICATION
        constant = statistics.mode(targets) if is_class else targets.mean()
        return self.score([constant] * len(self.test))


def measure(settings: Settings, path: Path, echo: Echo) -> None:
    """Measure what the file lacks; a contender that cannot be installed is left out."""
    finished = read_results(path)
    with ExitStack() as stack:
        servers: list[BenchServer] = []

        def start_server() -> BenchServer:
            if not servers:
                server = stack.enter_context(bench_server.start_server(echo))
                _prepare_server(server)
                stack.enter_context(trainers.forbid_kept_trainers(server))
                servers.append(server)
            return servers[0]

        for name in settings.tables:
            for seed in range(1, settings.seeds + 1):
                pending = _list_pending(settings, finished.keys(), name, seed)
                example = load_example(name, seed) if pending else None
                for contender in pending:
                    assert example is not None
                    server = start_server() if contender.name == OURS else None
                    try:
                        result = _measure_contender(example, contender, settings, server)
                    except NotInstalled as error:
                        echo(f"{name}, seed {seed}: {contender.name} is not installed: {error}")
                        continue
                    append_result(path, result)
                    echo(f"{name}, seed {seed}: {_describe(result)}")


def _prepare_server(server: BenchServer) -> None:
    """Start what a server that has trained lately has: the process of which trainers are forks."""
    bench_server.log_durations(server, -1)
    server.value("SELECT cerebro.load_example('flowers')")
    server.value(WARM_UP)


def load_example(name: str, seed: int) -> Example:
    """Load a table, and choose its test rows by the seed; classes become texts."""
    table = TABLES[name]
    frame = table.frame()
    if table.task == CLASSIFICATION:
        frame[table.target] = frame[table.target].map(str).astype(object)
    else:
        frame[table.target] = frame[table.target].astype(float)
    split = split_rows(frame, table.validation, seed)
    return Example(
        name=name,
        seed=seed,
        rows=len(frame),
        train=frame[split.train].reset_index(drop=True),
        test=frame[split.test].reset_index(drop=True),
    )


def _list_pending(settings: Settings, finished: Set[Key], name: str, seed: int) -> list[Contender]:
    """Return the contenders that have no result under these conditions."""
    contenders = list_contenders(TABLES[name], [*settings.contenders])
    return [
        contender
        for contender in contenders
        if contender.name in settings.again
        or Key(name, contender.name, seed, settings.seconds, settings.busy) not in finished
    ]


def _measure_contender(
    example: Example, contender: Contender, settings: Settings, server: BenchServer | None
) -> Result:
    """Run an attempt in a folder that is removed after it."""
    folder = Path(tempfile.mkdtemp(prefix="cerebro-db-bench-"))
    try:
        table = example.table
        task = Task(
            table=example.name,
            contender=contender.name,
            target=table.target,
            kind=table.task,
            seconds=settings.seconds,
            seed=example.seed,
            url=server.url if server else "",
            train=str(folder / "train.npz"),
            test=str(folder / "test.npz"),
            validation=table.validation,
            types=dict(table.types),
        )
        write_frame(example.train, Path(task.train))
        write_frame(example.test.drop(columns=[table.target]), Path(task.test))
        with _keep_busy(settings.busy):
            attempt = run_attempt(contender, task, folder, [server.pid] if server else [])
        return _make_result(example, contender, settings, attempt)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_result(
    example: Example, contender: Contender, settings: Settings, attempt: Attempt
) -> Result:
    answer = attempt.answer
    result = Result(
        table=example.name,
        contender=contender.name,
        seed=example.seed,
        seconds=settings.seconds,
        busy=settings.busy,
        rows=example.rows,
        train_rows=len(example.train),
        test_rows=len(example.test),
        score=example.score(answer.predictions) if answer else example.score_constant(),
        reason=attempt.reason,
        wall_seconds=attempt.usage.wall,
        cpu_seconds=attempt.usage.cpu,
        memory_bytes=attempt.usage.memory,
        cores=len(os.sched_getaffinity(0)),
        commit=find_commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if answer is None:
        return result
    return replace(
        result,
        train_seconds=answer.train_seconds,
        predict_seconds=answer.predict_seconds,
        more=answer.more,
    )


def find_commit() -> str:
    """Return the commit of the clone, with a plus sign if files differ from it."""
    clone = Path(__file__).parents[2]
    git = ["git", "-C", str(clone)]
    head = subprocess.run([*git, "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True)
    status = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True
    )
    if head.returncode:
        return ""
    return head.stdout.strip() + ("+" if status.stdout.strip() else "")


@contextmanager
def _keep_busy(count: int) -> Iterator[None]:
    """Let processes compute something else during the block."""
    processes = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _describe(result: Result) -> str:
    text = f"{result.contender} {abs(result.score):.5g}"
    if result.reason:
        return f"{text}, the best constant: {result.reason}"
    return f"{text} in {result.train_seconds:.1f} s"
