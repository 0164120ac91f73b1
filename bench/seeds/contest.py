"""Run the methods of model selection that are compared.

All methods run in the first turn. Ours and the fastest tasks run again with further seeds, which
show the noise.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench import trainers, turns
from bench.bench_server import BenchServer, Echo
from bench.contenders import run_module
from bench.job import Job, Result
from bench.measure import Usage
from bench.ratios import find_best
from bench.seeds import curves, environments
from bench.seeds.scale import Visit
from bench.seeds.workload import WORKLOAD
from bench.workloads import RUN_SEED

OURS = "bench.seeds.hopping"
WORKERS = 2
VISITS = "visits"
METRICS = {"metrics_compute_frequency": 1}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of model selection."""

    name: str
    module: str
    environment: str = ""  # the name of its virtual environment; none for ours
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: tuple[float, float] | None = None  # hours for each epoch, GB of rows at rest


MOP = Method(
    name="model hopping, cerebro_db",
    module=OURS,
    settings={"strategy": "mop", **METRICS},
    published=(1.77, 250),
)
JAX = Method(
    name="model hopping, cerebro_db, JAX", module=OURS, settings={**MOP.settings, "backend": "jax"}
)
AVERAGE = Method(
    name="averaging, cerebro_db", module=OURS, settings={"strategy": "average", **METRICS}
)
PLAIN = Method(
    name="averaging, Keras",
    module="bench.seeds.averaging",
    environment="tensorflow",
    published=(1.97, 250),
)
SYNCHRONOUS = Method(
    name="synchronous, TensorFlow",
    module="bench.seeds.synchronous",
    environment="tensorflow",
    published=(5.42, 250),
)
SERVER = Method(
    name="parameter server, TensorFlow",
    module="bench.seeds.parameter_server",
    environment="tensorflow",
    published=(19.0, 250),
)
TASKS = (
    Method(
        name="tasks, Celery",
        module="bench.seeds.celery_tasks",
        environment="celery",
        published=(1.72, 2000),
    ),
    Method(name="tasks, Dask", module="bench.seeds.dask_tasks", environment="dask"),
    Method(name="tasks, Ray", module="bench.seeds.ray_tasks", environment="ray"),
)
METHODS = (MOP, JAX, AVERAGE, PLAIN, *TASKS, SYNCHRONOUS, SERVER)


@dataclass(frozen=True, kw_only=True)
class WayAttempt:
    """An attempt of a method."""

    began: float  # seconds since the epoch
    usage: Usage
    result: Result | None
    reason: str = ""  # why there is no result
    stopped: bool = False  # the attempt was stopped at its time limit

    def get_extra(self, name: str) -> Any:
        """Return an extra value of the result; None if there is no result."""
        return None if self.result is None else self.result.more.get(name)

    @property
    def curves(self) -> curves.Curves:
        """The learning curves of an attempt that has a result."""
        assert self.result is not None
        return curves.read_curves(self.result)


@dataclass(kw_only=True)
class Contest:
    """All attempts, by the name of the method and the turn."""

    job: Job
    scale: str
    settings: Mapping[str, Any]
    attempts: dict[str, dict[int, WayAttempt]] = field(default_factory=dict)

    def list_successful(self, method: Method) -> dict[int, WayAttempt]:
        """Return the successful attempts of a method, by turn."""
        return {
            turn: attempt
            for turn, attempt in self.attempts.get(method.name, {}).items()
            if attempt.result is not None
        }

    def list_walls(self, method: Method) -> dict[int, float]:
        """Return the seconds of the successful attempts of a method, by turn."""
        return {turn: attempt.usage.wall for turn, attempt in self.list_successful(method).items()}

    def stopped(self, method: Method) -> float | None:
        """Return the seconds after which a method was stopped in its first turn, if it was."""
        first = self.attempts.get(method.name, {}).get(0)
        return first.usage.wall if first is not None and first.stopped else None

    def reason(self, method: Method) -> str:
        """Return why a method has no result."""
        return next(
            (attempt.reason for attempt in self.attempts.get(method.name, {}).values()),
            "nobody tried it",
        )

    @property
    def visits(self) -> list[Visit]:
        """The costs of a visit of each configuration by model hopping; none if that failed."""
        good = self.list_successful(MOP)
        return [Visit(*visit) for visit in good[min(good)].get_extra(VISITS)] if good else []

    @property
    def fastest(self) -> Method:
        """Model hopping with the faster framework."""
        return (
            JAX
            if find_best({method.name: self.list_walls(method) for method in (MOP, JAX)})
            == JAX.name
            else MOP
        )

    @property
    def tasks(self) -> Method:
        """The fastest method with tasks; the first one if none succeeded."""
        name = find_best({method.name: self.list_walls(method) for method in TASKS})
        return next((method for method in TASKS if method.name == name), TASKS[0])


def measure_contest(
    server: BenchServer, scale: str, repeats: int, limit: float, echo: Echo
) -> Contest:
    """Run all methods in turns; ours gets no idle trainers of earlier calls.

    Args:
        limit: seconds after which a peer is stopped.
    """
    echo(f"{WORKLOAD.key}: {WORKLOAD.title}")
    job = replace(turns.prepare_job(server, WORKLOAD, scale), processes=WORKERS)
    _, tuning, reason = run_module(server, "bench.tuning", job)
    contest = Contest(job=job, scale=scale, settings=tuning.more["settings"] if tuning else {})
    echo(f"  tuned Keras: {contest.settings or reason}")
    with trainers.forbid_kept_trainers(server):
        # Ours times the forms of its programs beforehand, as Keras is tuned beforehand.
        for method in (MOP, JAX):
            attempt = run_attempt(server, contest, method, 0, None)
            echo(f"  {method.name}, not counted: {_describe(attempt)}")
        for turn in range(repeats):
            for method in METHODS if turn == 0 else (MOP, JAX, contest.tasks):
                attempt = run_attempt(
                    server, contest, method, turn, limit if method.environment else None
                )
                contest.attempts.setdefault(method.name, {})[turn] = attempt
                echo(f"  {method.name}: {_describe(attempt)}")
    return contest


def run_attempt(
    server: BenchServer, contest: Contest, method: Method, turn: int, limit: float | None
) -> WayAttempt:
    """Run the job with a method and the seed of a turn."""
    folder = server.folder / "attempt"
    folder.mkdir()
    settings = dict(method.settings) if method.module == OURS else dict(contest.settings)
    job = replace(contest.job, seed=RUN_SEED + turn, settings=settings, folder=str(folder))
    began = time.time()
    try:
        by = environments.find_interpreter(method.environment) if method.environment else None
        began = time.time()
        usage, result, reason = run_module(server, method.module, job, limit, by)
        stopped = result is None and limit is not None and usage.wall >= limit
        return WayAttempt(began=began, usage=usage, result=result, reason=reason, stopped=stopped)
    except environments.NotInstalled as error:
        nothing = Usage(wall=0.0, cpu=0.0, memory=0, trainer=0)
        return WayAttempt(began=began, usage=nothing, result=None, reason=f"not installed: {error}")
    finally:
        shutil.rmtree(folder)


def _describe(attempt: WayAttempt) -> str:
    if attempt.result is None:
        return attempt.reason
    accuracy = curves.average_epochs(attempt.curves)[-1]
    return (
        f"{attempt.usage.wall:.1f} s, mean accuracy {accuracy:.4f}, "
        f"{attempt.result.moved_bytes:,} bytes moved"
    )
