"""Task parallelism: workers with full copies of the rows train whole configurations with Keras.

Each worker has its copy in a folder of its own, as if it were a machine of its own, and its own
core.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.job import Job, read_job
from bench.keras_config import encode_one_hot, prepare, read
from bench.keras_fit import choose_core, fit_epochs
from bench.seeds import files
from bench.seeds.curves import Point


class Worker:
    """A process with a copy of the rows, and the framework."""

    def __init__(self, job: Job, number: int) -> None:
        self._job = job
        own_core = choose_core(number)
        (train, valid), self._architectures, _ = read(job)
        self._train = files.store_rows(job, number, train)
        self._valid = encode_one_hot(valid, job.classes)
        self._keras = prepare(job.framework, [own_core])

    def train_curve(self, number: int) -> list[Point]:
        """Train a configuration, counted from 0; return its learning curve."""
        scores_by_epoch = fit_epochs(
            self._keras, self._job, number, self._architectures, self._train, self._valid
        )
        return [Point(time.time(), *scores) for scores in scores_by_epoch]


_process: dict[str, Any] = {}


def train_curve(job_path: str, number: int) -> list[Point]:
    """Train a configuration in a worker process, which reads its copy at the first call.

    Processes take the numbers of workers by creating a folder, which only one process can.

    Args:
        job_path: the file of the job.
    """
    if not _process:
        job = read_job(Path(job_path))
        _process["worker"] = Worker(job, _take_number(job))
    return list(_process["worker"].train_curve(number))


def _take_number(job: Job) -> int:
    """Return a number that no other process has taken."""
    for number in range(job.processes):
        try:
            files.find_folder(job, number).mkdir(parents=True)
        except FileExistsError:
            continue
        return number
    raise RuntimeError(
        f"one more process than {job.processes} was asked for a curve; expected no more than "
        "workers"
    )
