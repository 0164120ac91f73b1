"""The workers of a run: a place for each that trains at a time, and in each place a worker per
framework.

Their trainers are started at once, before any configuration is trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from cerebro_plpy.configs.params.frameworks import BACKENDS
from cerebro_plpy.database.sessions.async_dispatcher import Dispatcher, Steps
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


@dataclass(frozen=True)
class WorkerSet:
    """Workers whose trainers run, and the visits that they make."""

    workers: Sequence[Worker]
    visits: Visits


def start_workers(workplace: CallContext, request: FitRequest, places: int) -> WorkerSet:
    """Start the trainers, of so many as there are places; where the framework is still to be
    chosen, of each one that is installed. How each computes does not depend on how many there are,
    for bits do on that."""
    frameworks = (
        sorted(set(request.backends.values())) or BACKENDS[: 1 if workplace.is_local else None]
    )
    posts = (
        [None]
        if workplace.is_local
        else workplace.platform.assign_segments(request.source.segments, request.workers)
    )
    workers = workplace.open_workers(posts[:places], frameworks)
    visits = workplace.platform.visits(
        make_trainer_options(
            workplace, dict(enumerate(posts)), request.gpus, request.replay.threads
        ),
        workplace.settings,
        len(posts) * len(frameworks),
        workplace.db.info,
    )
    missing = _missing(workplace, visits, workers, some_may=not request.backends)
    workplace.close_workers(list(missing))
    return WorkerSet([worker for worker in workers if worker not in missing], visits)


def make_trainer_options(
    workplace: CallContext,
    posts: Mapping[int, int | None],
    gpus: tuple[int, ...],
    threads: int | None = None,
) -> list[settings.TrainerOptions]:
    """How the trainers of workers are started, by number: those on one machine share its cores,
    memory and GPUs.
    """
    hosts = workplace.platform.read_hosts(workplace.control, posts)
    sharing = Counter(hosts.values())
    before: Counter[str] = Counter()
    started = []
    for number in sorted(hosts):
        host = hosts[number]
        gpu = settings.assign_gpu(gpus, before[host])
        started.append(settings.TrainerOptions(trainers=sharing[host], gpu=gpu, threads=threads))
        before[host] += 1
    return started


def _missing(
    workplace: CallContext, visits: Visits, workers: Sequence[Worker], some_may: bool
) -> dict[Worker, ObjectNotReady]:
    """Start all trainers side by side; the workers whose framework is not installed, if `some_may`
    be so.
    """
    dispatcher: Dispatcher[None] = Dispatcher(workplace.check)
    missing: dict[Worker, ObjectNotReady] = {}
    for index, worker in enumerate(workers):
        dispatcher.begin(index, worker.session, visits.start(worker))
    while dispatcher.busy():
        for outcome in dispatcher.wait():
            if some_may and isinstance(outcome.error, ObjectNotReady):
                missing[workers[outcome.worker]] = outcome.error
                if len(missing) == len(workers):
                    raise outcome.error
            # What passes is tried again by the first visit; anything else would fail every visit.
            elif outcome.error is not None and not isinstance(outcome.error, RETRYABLE_ERRORS):
                raise outcome.error
    return missing


def choose_frameworks(
    workplace: CallContext, request: FitRequest, crew: WorkerSet, log: RunLog
) -> tuple[FitRequest, Sequence[Worker]]:
    """The request with a framework for each configuration, and the workers that these need."""
    if request.backends:
        return request, crew.workers
    first = [worker for worker in crew.workers if worker.number == 0]
    found = framework_choice.choose(crew.visits, request, first, log, workplace.db.info)
    log.write_backends(found)
    needed = [worker for worker in crew.workers if worker.framework in found.values()]
    workplace.close_workers([worker for worker in crew.workers if worker not in needed])
    return replace(request, backends=found), needed


T = TypeVar("T")


def run_on_workers(
    workplace: CallContext, crew: WorkerSet, steps: Sequence[Steps[T]]
) -> Iterator[tuple[Worker, T | None]]:
    """What the steps of each worker come to, as they end; the first error ends it."""
    dispatcher: Dispatcher[T] = Dispatcher(workplace.check)
    for index, (worker, its) in enumerate(zip(crew.workers, steps)):
        dispatcher.begin(index, worker.session, its)
    while dispatcher.busy():
        for outcome in dispatcher.wait():
            if outcome.error is not None:
                raise outcome.error
            yield crew.workers[outcome.worker], outcome.value


def open_scoring_workers(
    workplace: CallContext, framework: str, gpu: bool, segments: Sequence[int]
) -> WorkerSet:
    """Workers that score what lies on these segments, or one worker that scores all.

    Trainers of a run with as many as are asked for, or of the usual size, can be used again.
    """
    asked, platform = workplace.requested_workers, workplace.platform
    workers = workplace.reuse_workers(workplace.platform.assign_segments(segments, 1), framework)
    numbered = {worker.number: worker.segment_id for worker in workers}
    trainers = [
        replace(
            trainer,
            trainers=asked or platform.scoring_trainers(trainer.trainers, workplace.is_local),
        )
        for trainer in make_trainer_options(
            workplace, numbered, settings.choose_gpus(workplace.settings, gpu)
        )
    ]
    return WorkerSet(
        workers,
        workplace.platform.visits(trainers, workplace.settings, len(workers), workplace.db.info),
    )


def score_with_retry(
    workplace: CallContext,
    find_crew: Callable[[], WorkerSet],
    work: Callable[[WorkerSet], T],
    *,
    again: bool = True,
) -> T:
    """Let workers score rows; if one of their trainers dies, let new ones score all rows once more.

    `work` leaves nothing behind if it fails. It is not done `again` where rows may not pass twice.
    """
    crew = find_crew()
    try:
        return work(crew)
    except CerebroError as error:
        workplace.close_workers(crew.workers)
        for worker in crew.workers:
            worker.memory.forget()  # the caller's own session has no other worker
        if not (again and isinstance(error, TrainerFailure)):
            raise
    return score_with_retry(workplace, find_crew, work, again=False)


def choose_affinity(
    request: FitRequest, workers: Sequence[Worker], programs: Mapping[int, object]
) -> WorkerAffinity | None:
    """How configurations stay with workers, where they may and the plan of the run does not say
    otherwise; None where they hop. `programs` are what is compiled for each."""
    if not can_stay(request, workers) or (request.plan and not request.plan.strategy.is_stationary):
        return None
    return make_affinity(request.spec.schedule, programs, list_compilations(workers))


def can_stay(request: FitRequest, workers: Sequence[Worker]) -> bool:
    """Whether each of these workers can serve all segments, and has room for all of their rows."""
    room = min((worker.memory.cache_bytes for worker in workers), default=0)
    return all(worker.is_replaceable for worker in workers) and has_cache_memory(request, room)


def has_cache_memory(request: FitRequest, room: int) -> bool:
    """Whether configurations may stay with workers that can serve all segments, and have this room
    for rows each.
    """
    return request.spec.schedule in (FOREMOST, LONGEST) and request.decoded_bytes <= room


def list_compilations(workers: Sequence[Worker]) -> dict[int, frozenset[str]]:
    """What the trainer of each worker has compiled before this run."""
    return {worker.number: worker.memory.compilations for worker in workers}
