"""The workers of a run: as many as train at a time, and for each of them one per framework.

Their trainers are started at once, before any configuration is trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from cerebro_plpy.configs.params.frameworks import BACKENDS
from cerebro_plpy.database.sessions.async_dispatcher import Dispatcher, Outcome, Steps
from cerebro_plpy.errors import CerebroError, ObjectNotReady, TrainerFailure
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers import framework_choice
from cerebro_plpy.run.workers.tasks import RETRYABLE_ERRORS
from cerebro_plpy.scheduling.schedule.scheduling_policies import FOREMOST, LONGEST
from cerebro_plpy.scheduling.schedule.worker_affinity import WorkerAffinity, make_affinity
from cerebro_plpy.trainer_client import settings

T = TypeVar("T")


@dataclass(frozen=True)
class WorkerSet:
    """Workers whose trainers run."""

    workers: Sequence[Worker]
    visits: Visits  # the platform's statements for these workers

    def list_with(self, framework: str) -> list[Worker]:
        """Return the workers that have a framework."""
        return [worker for worker in self.workers if worker.framework == framework]


def start_workers(context: CallContext, request: FitRequest, slots: int) -> WorkerSet:
    """Start the trainers of a run.

    If the framework is still to be chosen, a trainer of each installed framework is started. The
    options of trainers do not depend on the slots, because bits depend on them.
    """
    segments: Sequence[int | None] = [None]  # the segment that each worker serves
    frameworks: Sequence[str] = sorted(set(request.backends.values()))
    if not context.is_local:
        segments = context.platform.assign_segments(request.source.segments, request.workers)
    if not frameworks:
        frameworks = BACKENDS[:1] if context.is_local else BACKENDS
    workers = context.open_workers(segments[:slots], frameworks)
    options = make_trainer_options(
        context, dict(enumerate(segments)), request.gpus, request.replay.threads
    )
    visits = context.platform.visits(
        options, context.settings, len(segments) * len(frameworks), context.db.info
    )
    missing = _start_trainers(context, visits, workers, some_may_miss=not request.backends)
    context.close_workers(list(missing))
    return WorkerSet([worker for worker in workers if worker not in missing], visits)


def make_trainer_options(
    context: CallContext,
    segments: Mapping[int, int | None],
    gpus: tuple[int, ...],
    threads: int | None = None,
) -> list[settings.TrainerOptions]:
    """Return the options of trainers, which share the cores, memory and GPUs of their machine.

    Args:
        segments: the only segment that a worker serves, or None, by the worker's number.
        threads: threads of each trainer; None for the usual number.
    """
    hosts = context.platform.read_hosts(context.control, segments)
    trainers_per_host = Counter(hosts.values())
    counted: Counter[str] = Counter()
    options = []
    for number in sorted(hosts):
        host = hosts[number]
        gpu = settings.assign_gpu(gpus, counted[host])
        counted[host] += 1
        trainers = trainers_per_host[host]
        options.append(settings.TrainerOptions(trainers=trainers, gpu=gpu, threads=threads))
    return options


def _start_trainers(
    context: CallContext, visits: Visits, workers: Sequence[Worker], *, some_may_miss: bool
) -> dict[Worker, ObjectNotReady]:
    """Start all trainers at once; return the errors of workers whose framework is not installed.

    Args:
        some_may_miss: such errors are not raised if another framework is installed.
    """
    missing: dict[Worker, ObjectNotReady] = {}
    for outcome in run_steps(context, workers, map(visits.start, workers)):
        if some_may_miss and isinstance(outcome.error, ObjectNotReady):
            missing[workers[outcome.worker]] = outcome.error
            if len(missing) == len(workers):
                raise outcome.error
        # The first visit retries temporary errors; any other error would fail every visit.
        elif outcome.error is not None and not isinstance(outcome.error, RETRYABLE_ERRORS):
            raise outcome.error
    return missing


def run_steps(
    context: CallContext, workers: Sequence[Worker], steps: Iterable[Steps[T]]
) -> Iterator[Outcome[T]]:
    """Run the steps of each worker; yield the outcomes, by position of the worker, as they end."""
    dispatcher: Dispatcher[T] = Dispatcher(context.check)
    for position, (worker, worker_steps) in enumerate(zip(workers, steps)):
        dispatcher.begin(position, worker.session, worker_steps)
    while dispatcher.busy():
        yield from dispatcher.wait()


def choose_frameworks(
    context: CallContext, request: FitRequest, worker_set: WorkerSet, log: RunLog
) -> tuple[FitRequest, Sequence[Worker]]:
    """Return the request with a framework for each configuration, and the workers with these."""
    workers = worker_set.workers
    if request.backends:
        return request, workers
    first = [worker for worker in workers if worker.number == 0]
    backends = framework_choice.choose(worker_set.visits, request, first, log, context.db.info)
    log.write_backends(backends)
    required = set(backends.values())
    context.close_workers([worker for worker in workers if worker.framework not in required])
    remaining = [worker for worker in workers if worker.framework in required]
    return replace(request, backends=backends), remaining


def run_on_workers(
    context: CallContext, worker_set: WorkerSet, steps: Sequence[Steps[T]]
) -> Iterator[tuple[Worker, T | None]]:
    """Run the steps of each worker; yield their results as they end.

    The first error is raised.
    """
    for outcome in run_steps(context, worker_set.workers, steps):
        if outcome.error is not None:
            raise outcome.error
        yield worker_set.workers[outcome.worker], outcome.value


def open_scoring_workers(
    context: CallContext, framework: str, gpu: bool, segments: Sequence[int], tasks: int = 1
) -> WorkerSet:
    """Return workers that score the rows on segments, or workers that each can score all rows.

    Trainers of a run with the requested number of workers, or of the usual size, are reused.

    Args:
        tasks: more workers than that have nothing to score.
    """
    platform = context.platform
    usual_workers = context.requested_workers or platform.default_workers(len(segments))
    count = min(tasks, usual_workers)
    workers = context.reuse_workers(platform.assign_segments(segments, count), framework)
    worker_segments = {worker.number: worker.segment_id for worker in workers}
    gpus = settings.choose_gpus(context.settings, gpu)
    trainers = []
    for options in make_trainer_options(context, worker_segments, gpus):
        usual = platform.scoring_trainers(options.trainers, context.is_local)
        trainers.append(replace(options, trainers=context.requested_workers or usual))
    visits = platform.visits(trainers, context.settings, len(workers), context.db.info)
    return WorkerSet(workers, visits)


def score_with_retry(
    context: CallContext,
    open_workers: Callable[[], WorkerSet],
    score: Callable[[WorkerSet], T],
    *,
    may_retry: bool = True,
) -> T:
    """Let workers score rows; if one of their trainers dies, let new ones score all rows again.

    Args:
        score: has no effects if it fails.
        may_retry: False if rows may not be processed twice.
    """
    worker_set = open_workers()
    try:
        return score(worker_set)
    except CerebroError as error:
        context.close_workers(worker_set.workers)
        for worker in worker_set.workers:
            worker.memory.forget()  # the caller's own session has no other worker
        if not (may_retry and isinstance(error, TrainerFailure)):
            raise
    return score_with_retry(context, open_workers, score, may_retry=False)


def choose_affinity(
    request: FitRequest, workers: Sequence[Worker], programs: Mapping[int, object]
) -> WorkerAffinity | None:
    """Return how configurations stay with workers, or None if they hop.

    Args:
        programs: the compiled code of each configuration, by mst_key.
    """
    if not can_stay(request, workers) or (request.plan and not request.plan.strategy.is_stationary):
        return None
    return make_affinity(request.spec.schedule, programs, list_compilations(workers))


def can_stay(request: FitRequest, workers: Sequence[Worker]) -> bool:
    """Return whether each worker can serve all segments and has memory for all rows."""
    cache_bytes = min((worker.memory.cache_bytes for worker in workers), default=0)
    if not all(worker.is_replaceable for worker in workers):
        return False
    return has_cache_memory(request, cache_bytes)


def has_cache_memory(request: FitRequest, cache_bytes: int) -> bool:
    """Return whether configurations can stay with workers that have this memory for rows each."""
    return request.spec.schedule in (FOREMOST, LONGEST) and request.decoded_bytes <= cache_bytes


def list_compilations(workers: Sequence[Worker]) -> dict[int, frozenset[str]]:
    """Return the programs that the trainers of workers have compiled before this run."""
    return {worker.number: worker.memory.compilations for worker in workers}
