"""The workers of a run: a place for each that trains at a time, and in each place a worker per framework.

Their trainers are started at once, before there is a run that could fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cerebro_plpy.configs.frameworks import BACKENDS
from cerebro_plpy.database.dispatch import Dispatcher, Steps
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.platform.protocol import Visits, Worker
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.run import framework_choice
from cerebro_plpy.run.log import RunLog
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.run.tasks import PASSING
from cerebro_plpy.trainer import settings


@dataclass(frozen=True)
class Crew:
    """Workers whose trainers run, and the visits that they make."""

    workers: Sequence[Worker]
    visits: Visits


def start(place: Workplace, request: FitRequest) -> Crew:
    """Start the trainers; where the framework is still to be chosen, of each one that is installed."""
    frameworks = sorted(set(request.backends.values())) or BACKENDS[: 1 if place.local else None]
    workers = place.workers(place.platform.posts(request.source.segments, request.workers), frameworks)
    visits = place.platform.visits(
        trainers_of(place, workers, request.gpus, request.repeat.threads), place.settings, len(workers), place.db.info
    )
    missing = _missing(place, visits, workers, some_may=not request.backends)
    place.dismiss(list(missing))
    return Crew([worker for worker in workers if worker not in missing], visits)


def trainers_of(
    place: Workplace, workers: Sequence[Worker], gpus: tuple[int, ...], threads: int | None = None
) -> list[settings.TrainerRequest]:
    """How the trainers of workers are started, by number: those on one machine share its cores, memory and GPUs."""
    hosts = place.platform.hosts(place.control, {worker.number: worker.segment_id for worker in workers})
    sharing = Counter(hosts.values())
    before: Counter[str] = Counter()
    started = []
    for number in sorted(hosts):
        host = hosts[number]
        gpu = settings.device_of(gpus, before[host])
        started.append(settings.TrainerRequest(trainers=sharing[host], gpu=gpu, threads=threads))
        before[host] += 1
    return started


def _missing(
    place: Workplace, visits: Visits, workers: Sequence[Worker], some_may: bool
) -> dict[Worker, ObjectNotReady]:
    """Start all trainers side by side; the workers whose framework is not installed, if `some_may` be so."""
    dispatcher: Dispatcher[None] = Dispatcher(place.check)
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
            elif outcome.error is not None and not isinstance(outcome.error, PASSING):
                raise outcome.error
    return missing


def choose_frameworks(place: Workplace, request: FitRequest, crew: Crew) -> tuple[FitRequest, Sequence[Worker]]:
    """The request with a framework for each configuration, and the workers that these need."""
    if request.backends:
        return request, crew.workers
    first = [worker for worker in crew.workers if worker.number == 0]
    log = RunLog(place.control, 0)  # of no run yet: timings belong to none
    found = framework_choice.choose(crew.visits, request, first, log, place.db.info)
    needed = [worker for worker in crew.workers if worker.framework in found.values()]
    place.dismiss([worker for worker in crew.workers if worker not in needed])
    return replace(request, backends=found), needed


T = TypeVar("T")


def together(place: Workplace, crew: Crew, steps: Sequence[Steps[T]]) -> Iterator[tuple[Worker, T | None]]:
    """What the steps of each worker come to, as they end; the first error ends it."""
    dispatcher: Dispatcher[T] = Dispatcher(place.check)
    for index, (worker, its) in enumerate(zip(crew.workers, steps)):
        dispatcher.begin(index, worker.session, its)
    while dispatcher.busy():
        for outcome in dispatcher.wait():
            if outcome.error is not None:
                raise outcome.error
            yield crew.workers[outcome.worker], outcome.value


def crew_for(place: Workplace, framework: str, gpu: bool, segments: Sequence[int]) -> Crew:
    """Workers that score what lies on these segments, or one worker that scores all."""
    workers = place.workers(place.platform.posts(segments, 1), (framework,))
    trainers = [
        replace(trainer, trainers=place.platform.scoring_trainers(trainer.trainers, place.local))
        for trainer in trainers_of(place, workers, settings.devices(place.settings, gpu))
    ]
    return Crew(workers, place.platform.visits(trainers, place.settings, len(workers), place.db.info))
