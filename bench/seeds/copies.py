"""Task parallelism: each worker has a full copy of the rows in a folder of its own, as if it were a
machine of its own, and trains whole configurations by Keras, one after another, on a core of its
own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.job import Job, read_job
from bench.keras_config import one_hot, prepare, read
from bench.keras_fit import core, epochs
from bench.seeds import files
from bench.seeds.curves import Point


class Worker:
    """A process that has a copy, and the framework."""

    def __init__(self, job: Job, number: int) -> None:
        self._job, own = job, core(number)
        (train, valid), self._architectures, _ = read(job)
        self._train = files.stored(job, number, train)
        self._valid = one_hot(valid, job.classes)
        self._keras = prepare(job.framework, [own])

    def curve(self, number: int) -> list[Point]:
        """What a configuration, from 0, comes to after each epoch."""
        of = epochs(self._keras, self._job, number, self._architectures, self._train, self._valid)
        return [Point(time.time(), *scores) for scores in of]


_here: dict[str, Any] = {}


def curve(told: str, number: int) -> list[Point]:
    """What a configuration comes to in a worker process, which gets its copy when it is asked for
    the first time.

    `told` is the file that names the job. Processes take the numbers of workers by making a folder,
    which only one can.
    """
    if not _here:
        job = read_job(Path(told))
        _here["worker"] = Worker(job, _number(job))
    return list(_here["worker"].curve(number))


def _number(job: Job) -> int:
    """A number that no other process has taken."""
    for number in range(job.processes):
        try:
            files.folder(job, number).mkdir(parents=True)
        except FileExistsError:
            continue
        return number
    raise RuntimeError(
        f"one more process than {job.processes} was asked for a curve; expected no more than "
        "workers"
    )
