"""The contenders, and the measurement of one attempt of a contender."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bench import bench_server, measure
from bench.bench_server import BenchServer
from bench.breakdown import break_down, break_down_cpu, read_steps
from bench.job import Job, Result, read_result, write_job
from bench.measure import Usage

LAST_LINES = 12
FRAMEWORKS = ("tensorflow", "jax")


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A way to do a job: a module of this package, run as a process of its own."""

    name: str
    module: str
    framework: str
    processes: int = 1

    @property
    def ours(self) -> bool:
        """Return whether this is cerebro_db."""
        return self.module == "bench.ours"


def make_ours(framework: str) -> Contender:
    """Return cerebro_db with a framework."""
    return Contender(name=f"cerebro_db, {framework}", module="bench.ours", framework=framework)


def make_keras(framework: str) -> tuple[Contender, ...]:
    """Return plain Keras with a framework, in one process and in two."""
    processes = {"one process": 1, "two processes": 2}
    return tuple(
        Contender(
            name=f"Keras fit, {framework}, {text}",
            module="bench.keras_fit",
            framework=framework,
            processes=n,
        )
        for text, n in processes.items()
    )


OURS = tuple(make_ours(framework) for framework in FRAMEWORKS)
KERAS = tuple(contender for framework in FRAMEWORKS for contender in make_keras(framework))
TORCH = (make_ours("torch"), *make_keras("torch"))
RAY = tuple(
    Contender(name=f"Ray Tune, {f}", module="bench.ray_tune", framework=f, processes=2)
    for f in FRAMEWORKS
)
MADLIB = Contender(
    name="MADlib's hop, made again", module="bench.madlib_hop", framework="tensorflow", processes=2
)
PEERS = (*KERAS, *RAY, MADLIB)
ALONE = (*(peer for peer in KERAS if peer.processes == 1), MADLIB)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt of a contender."""

    usage: Usage
    result: Result | None
    reason: str = ""  # why there is no result
    stored: int = 0  # bytes by which the database grew
    phases: Mapping[str, float] | None = None  # seconds by phase, for ours
    cpu: Mapping[str, float] | None = None  # CPU seconds of our trainers by phase


def run_attempt(
    server: BenchServer,
    job: Job,
    contender: Contender,
    settings: Mapping[str, Any],
    limit: float | None = None,
) -> Attempt:
    """Let a contender do a job within `limit` seconds, and measure it."""
    contender_job = replace(
        job,
        framework=contender.framework,
        processes=contender.processes,
        settings=dict(settings),
        folder=str(server.folder),
    )
    bytes_before = measure_database(server)
    log_position = server.measure_log()
    start = time.time()
    usage, result, reason = run_module(server, contender.module, contender_job, limit)
    end = time.time()
    phases = cpu = None
    if contender.ours and result is not None:
        steps = read_steps(server.read_log(log_position))
        training = result.more["training_seconds"]
        phases = break_down(steps, start, end, training)
        cpu = break_down_cpu(steps, start, end, training, usage.histories)
    stored_bytes = measure_database(server) - bytes_before
    return Attempt(
        usage=usage, result=result, reason=reason, stored=stored_bytes, phases=phases, cpu=cpu
    )


@dataclass(frozen=True)
class Loops:
    """The times of the bare loops."""

    epochs: Sequence[float]  # seconds of all visits of each epoch
    trainers: int  # number of trainers that shared the visits

    @property
    def seconds(self) -> float:
        """The seconds on all cores."""
        return sum(self.epochs) / self.trainers


def run_bare_loops(server: BenchServer, job: Job, framework: str) -> tuple[Loops | None, str]:
    """Run the bare loops of a job; return their times, or the reason why there are none."""
    _, result, reason = run_module(server, "bench.bare", replace(job, framework=framework))
    return Loops(result.more["epochs"], result.more["trainers"]) if result else None, reason


class Interpreter(NamedTuple):
    """The command before `-m`, and the environment, with which a module runs."""

    command: Sequence[str]
    environment: Mapping[str, str]


def run_module(
    server: BenchServer,
    module: str,
    job: Job,
    limit: float | None = None,
    interpreter: Interpreter | None = None,
) -> tuple[Usage, Result | None, str]:
    """Run a module on a job.

    Args:
        interpreter: this process's interpreter if None.

    Returns:
        The usage of the module and the server, the result, and the reason if there is none.
    """
    interpreter = interpreter or Interpreter([sys.executable], bench_server.make_environment())
    numbered = f"{module}-{job.framework}"
    job_path = server.folder / f"{numbered}.job"
    result_path = server.folder / f"{numbered}.result"
    result_path.unlink(missing_ok=True)
    write_job(job, job_path)
    command = [*interpreter.command, "-m", module, str(job_path), str(result_path)]
    command_result = measure.run(command, interpreter.environment, [server.pid], limit)
    if command_result.status is None:
        return command_result.usage, None, f"stopped after {limit:.0f} s"
    if command_result.status == 0 and result_path.exists():
        return command_result.usage, read_result(result_path), ""
    lines = [line for line in command_result.output.splitlines() if line.strip()]
    print("\n".join(lines[-LAST_LINES:]), file=sys.stderr)
    return command_result.usage, None, find_error(lines) or f"exit status {command_result.status}"


def find_error(lines: Sequence[str]) -> str:
    """Return the last error in the output of a failed process, else its last line.

    >>> find_error(["Traceback (most recent call last):", "ValueError: no rows", "HINT:  look"])
    'ValueError: no rows'
    """
    errors = [line for line in lines if re.match(r"\S*(Error|Exception|Undefined\w*)\b.*:", line)]
    return (errors or list(lines) or [""])[-1].strip()


def measure_database(server: BenchServer) -> int:
    """Return the bytes of the database on disk."""
    return int(server.value("SELECT pg_database_size(current_database())"))
