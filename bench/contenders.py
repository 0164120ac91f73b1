"""Who takes part, and one measured attempt of one of them."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bench import measure, place
from bench.breakdown import broken_down, cpu_broken_down, steps
from bench.job import Job, Result, read_result, write_job
from bench.measure import Usage
from bench.place import Place

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
        """Whether this is cerebro_db."""
        return self.module == "bench.ours"


def ours_with(framework: str) -> Contender:
    """cerebro_db with a framework."""
    return Contender(name=f"cerebro_db, {framework}", module="bench.ours", framework=framework)


def keras_with(framework: str) -> tuple[Contender, ...]:
    """Plain Keras with a framework, in one process and in two."""
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


OURS = tuple(ours_with(framework) for framework in FRAMEWORKS)
KERAS = tuple(contender for framework in FRAMEWORKS for contender in keras_with(framework))
TORCH = (ours_with("torch"), *keras_with("torch"))
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
    """What came of one attempt: a result, or the reason why there is none."""

    usage: Usage
    result: Result | None
    reason: str = ""
    stored: int = 0
    phases: Mapping[str, float] | None = None
    cpu: Mapping[str, float] | None = None
    """What trainers of ours used in each phase."""


def attempt(
    at: Place,
    job: Job,
    contender: Contender,
    settings: Mapping[str, Any],
    limit: float | None = None,
) -> Attempt:
    """Let a contender do a job within so many seconds, and measure it."""
    own = replace(
        job,
        framework=contender.framework,
        processes=contender.processes,
        settings=dict(settings),
        folder=str(at.folder),
    )
    stored, logged, began = database_bytes(at), at.logged(), time.time()
    usage, result, reason = process(at, contender.module, own, limit)
    ended = time.time()
    phases = cpu = None
    if contender.ours and result is not None:
        found, training = steps(at.log_since(logged)), result.more["training_seconds"]
        phases = broken_down(found, began, ended, training)
        cpu = cpu_broken_down(found, began, ended, training, usage.courses)
    grown = database_bytes(at) - stored
    return Attempt(usage=usage, result=result, reason=reason, stored=grown, phases=phases, cpu=cpu)


@dataclass(frozen=True)
class Loops:
    """Seconds of the bare loops, summed over all visits of each epoch, and how many trainers shared
    them.
    """

    epochs: Sequence[float]
    trainers: int

    @property
    def seconds(self) -> float:
        """What they take on all cores."""
        return sum(self.epochs) / self.trainers


def bare_loops(at: Place, job: Job, framework: str) -> tuple[Loops | None, str]:
    """The bare loops of a job, or why there are none."""
    _, result, reason = process(at, "bench.bare", replace(job, framework=framework))
    return Loops(result.more["epochs"], result.more["trainers"]) if result else None, reason


class Interpreter(NamedTuple):
    """How a module is run: the command before `-m`, and the environment."""

    command: Sequence[str]
    environment: Mapping[str, str]


def process(
    at: Place, module: str, job: Job, limit: float | None = None, by: Interpreter | None = None
) -> tuple[Usage, Result | None, str]:
    """Run a module on a job, by this interpreter unless another one is given; what it took together
    with the server, its result, or why there is none."""
    by = by or Interpreter([sys.executable], place.environment())
    numbered = f"{module}-{job.framework}"
    told, answer = at.folder / f"{numbered}.job", at.folder / f"{numbered}.result"
    answer.unlink(missing_ok=True)
    write_job(job, told)
    command = [*by.command, "-m", module, str(told), str(answer)]
    ended = measure.run(command, by.environment, [at.pid], limit)
    if ended.status is None:
        return ended.usage, None, f"stopped after {limit:.0f} s"
    if ended.status == 0 and answer.exists():
        return ended.usage, read_result(answer), ""
    lines = [line for line in ended.output.splitlines() if line.strip()]
    print("\n".join(lines[-LAST_LINES:]), file=sys.stderr)
    return ended.usage, None, blamed(lines) or f"exit status {ended.status}"


def blamed(lines: Sequence[str]) -> str:
    """The line of a failed process' output that says most: its last error, else its last line.

    >>> blamed(["Traceback (most recent call last):", "ValueError: no rows", "HINT:  look"])
    'ValueError: no rows'
    """
    errors = [line for line in lines if re.match(r"\S*(Error|Exception|Undefined\w*)\b.*:", line)]
    return (errors or list(lines) or [""])[-1].strip()


def database_bytes(at: Place) -> int:
    """Bytes of the database on disk."""
    return int(at.value("SELECT pg_database_size(current_database())"))
