"""Who takes part in the table, and its turns: all in the first; ours and the fastest tasks once
more for each further seed, so that it is seen what noise is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench import trainers, turns
from bench.contenders import process
from bench.job import Job, Result
from bench.measure import Usage
from bench.place import Place
from bench.ratios import best
from bench.seeds import curves, environments
from bench.seeds.scale import Visit
from bench.seeds.workload import WORKLOAD
from bench.workloads import RUN_SEED

Say = Callable[[str], None]
OURS, WORKERS = "bench.seeds.hopping", 2
VISITS = "visits"
METRICS = {"metrics_compute_frequency": 1}


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to do the selection: a module, the name of its environment (none for ours), and what it
    is told; and the published hours for each epoch, and GB of rows at rest, of the way that it
    makes again."""

    name: str
    module: str
    environment: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: tuple[float, float] | None = None


MOP = Way(
    name="model hopping, cerebro_db",
    module=OURS,
    settings={"strategy": "mop", **METRICS},
    published=(1.77, 250),
)
JAX = Way(
    name="model hopping, cerebro_db, JAX", module=OURS, settings={**MOP.settings, "backend": "jax"}
)
AVERAGE = Way(
    name="averaging, cerebro_db", module=OURS, settings={"strategy": "average", **METRICS}
)
PLAIN = Way(
    name="averaging, Keras",
    module="bench.seeds.averaging",
    environment="tensorflow",
    published=(1.97, 250),
)
SYNCHRONOUS = Way(
    name="synchronous, TensorFlow",
    module="bench.seeds.synchronous",
    environment="tensorflow",
    published=(5.42, 250),
)
SERVER = Way(
    name="parameter server, TensorFlow",
    module="bench.seeds.parameter_server",
    environment="tensorflow",
    published=(19.0, 250),
)
TASKS = (
    Way(
        name="tasks, Celery",
        module="bench.seeds.celery_tasks",
        environment="celery",
        published=(1.72, 2000),
    ),
    Way(name="tasks, Dask", module="bench.seeds.dask_tasks", environment="dask"),
    Way(name="tasks, Ray", module="bench.seeds.ray_tasks", environment="ray"),
)
WAYS = (MOP, JAX, AVERAGE, PLAIN, *TASKS, SYNCHRONOUS, SERVER)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """An attempt: when it began, what it took, and its result or why there is none."""

    began: float
    usage: Usage
    result: Result | None
    reason: str = ""
    stopped: bool = False
    """Whether that is because its time was over."""

    def told(self, name: str) -> Any:
        """Something that only such a contender can tell."""
        return None if self.result is None else self.result.more.get(name)

    @property
    def curves(self) -> curves.Curves:
        """Of an attempt with a result."""
        assert self.result is not None
        return curves.told(self.result)


@dataclass(kw_only=True)
class Contest:
    """All attempts, by the name of the way and the turn."""

    job: Job
    scale: str
    settings: Mapping[str, Any]
    tried: dict[str, dict[int, Tried]] = field(default_factory=dict)

    def good(self, way: Way) -> dict[int, Tried]:
        """The attempts that succeeded."""
        return {
            turn: each
            for turn, each in self.tried.get(way.name, {}).items()
            if each.result is not None
        }

    def walls(self, way: Way) -> dict[int, float]:
        """Their seconds."""
        return {turn: each.usage.wall for turn, each in self.good(way).items()}

    def stopped(self, way: Way) -> float | None:
        """After how many seconds a way was stopped that was too slow in its first turn."""
        first = self.tried.get(way.name, {}).get(0)
        return first.usage.wall if first is not None and first.stopped else None

    def reason(self, way: Way) -> str:
        """Why there is no result of a way."""
        return next(
            (each.reason for each in self.tried.get(way.name, {}).values()), "nobody tried it"
        )

    @property
    def visits(self) -> list[Visit]:
        """What a visit of each configuration takes by model hopping; none where that failed."""
        good = self.good(MOP)
        return [Visit(*visit) for visit in good[min(good)].told(VISITS)] if good else []

    @property
    def fastest(self) -> Way:
        """Model hopping with the framework with which it is faster."""
        return JAX if best({way.name: self.walls(way) for way in (MOP, JAX)}) == JAX.name else MOP

    @property
    def tasks(self) -> Way:
        """The fastest of those with tasks; the first where none succeeded."""
        name = best({way.name: self.walls(way) for way in TASKS})
        return next((way for way in TASKS if way.name == name), TASKS[0])


def measured(at: Place, scale: str, repeats: int, limit: float, say: Say) -> Contest:
    """All ways in turn, each peer for at most so many seconds. Ours gets no trainer that an earlier
    call has left.
    """
    say(f"{WORKLOAD.key}: {WORKLOAD.title}")
    job = replace(turns.ready(at, WORKLOAD, scale), processes=WORKERS)
    _, tuned, reason = process(at, "bench.tuning", job)
    done = Contest(job=job, scale=scale, settings=tuned.more["settings"] if tuned else {})
    say(f"  tuned Keras: {done.settings or reason}")
    with trainers.forked(at):
        # Which form of a program is fastest is known before, as Keras is tuned before.
        for way in (MOP, JAX):
            say(f"  {way.name}, not counted: {_said(attempt(at, done, way, 0, None))}")
        for turn in range(repeats):
            for way in WAYS if turn == 0 else (MOP, JAX, done.tasks):
                tried = attempt(at, done, way, turn, limit if way.environment else None)
                done.tried.setdefault(way.name, {})[turn] = tried
                say(f"  {way.name}: {_said(tried)}")
    return done


def attempt(at: Place, done: Contest, way: Way, turn: int, limit: float | None) -> Tried:
    """Do the job by a way, with the seed of a turn."""
    folder = at.folder / "attempt"
    folder.mkdir()
    settings = dict(way.settings) if way.module == OURS else dict(done.settings)
    job = replace(done.job, seed=RUN_SEED + turn, settings=settings, folder=str(folder))
    began = time.time()
    try:
        by = environments.interpreter(way.environment) if way.environment else None
        began = time.time()
        usage, result, reason = process(at, way.module, job, limit, by)
        stopped = result is None and limit is not None and usage.wall >= limit
        return Tried(began=began, usage=usage, result=result, reason=reason, stopped=stopped)
    except environments.NotInstalled as error:
        nothing = Usage(wall=0.0, cpu=0.0, memory=0, trainer=0)
        return Tried(began=began, usage=nothing, result=None, reason=f"not installed: {error}")
    finally:
        shutil.rmtree(folder)


def _said(tried: Tried) -> str:
    if tried.result is None:
        return tried.reason
    accuracy = curves.epochs(tried.curves)[-1]
    return (
        f"{tried.usage.wall:.1f} s, mean accuracy {accuracy:.4f}, {tried.result.moved:,} bytes "
        "moved"
    )
