"""A peer: plain Keras. The rows are read once, then one process, or several that share the
configurations, train one configuration after another with `fit`.

With several processes each is tied to a core of its own and takes the next configuration, those
with most steps first, when it has done one: no core waits while there is work.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

from bench.job import Job, Result, arguments, write_result
from bench.keras_config import Architectures, build, evaluate, one_hot, prepare, read


def main() -> None:
    """Do the job of the command line."""
    job, result_path = arguments()
    rows, architectures, received = read(job)
    train, valid = (one_hot(examples, job.classes) for examples in rows)
    order = sorted(range(len(job.configs)), key=lambda number: job.configs[number].batch_size)
    if job.processes == 1:
        keras = prepare(job.framework)
        scores = [(n, *fitted(keras, job, n, architectures, train, valid)) for n in order]
    else:
        scores = _in_processes(job, order, architectures, train, valid)
    result = Result(
        scores={n + 1: (loss, accuracy) for n, loss, accuracy in scores}, moved_bytes=received
    )
    write_result(result, result_path)


def fitted(
    keras: Any,
    job: Job,
    number: int,
    architectures: Architectures,
    train: tuple[Any, Any],
    valid: tuple[Any, Any],
) -> tuple[float, float]:
    """Train one configuration; its loss and accuracy on the validation rows."""
    config, model = job.configs[number], _model(keras, job, number, architectures)
    model.fit(*train, batch_size=config.batch_size, epochs=job.epochs, verbose=0)
    return evaluate(model, valid)


def epochs(
    keras: Any,
    job: Job,
    number: int,
    architectures: Architectures,
    train: tuple[Any, Any],
    valid: tuple[Any, Any],
) -> Iterator[tuple[float, float]]:
    """Train one configuration as long as somebody asks; its loss and accuracy after each epoch."""
    config, model = job.configs[number], _model(keras, job, number, architectures)
    for _ in range(job.epochs):
        model.fit(*train, batch_size=config.batch_size, verbose=0)
        yield evaluate(model, valid)


def _model(keras: Any, job: Job, number: int, architectures: Architectures) -> Any:
    config = job.configs[number]
    keras.backend.clear_session()
    keras.utils.set_random_seed(job.seed + number)
    return build(keras, architectures[config.model - 1], config, job.settings)


def _in_processes(
    job: Job,
    order: list[int],
    architectures: Architectures,
    train: tuple[Any, Any],
    valid: tuple[Any, Any],
) -> list[tuple[int, float, float]]:
    context = multiprocessing.get_context("fork")
    waiting, done = context.SimpleQueue(), context.SimpleQueue()
    for number in [*order, *[None] * job.processes]:
        waiting.put(number)

    def work(process: int) -> None:
        keras = prepare(job.framework, [core(process)])
        while (number := waiting.get()) is not None:
            done.put((number, *fitted(keras, job, number, architectures, train, valid)))

    forked(job, work)
    found: list[tuple[int, float, float]] = []
    while not done.empty():
        found.append(done.get())
    return found


def core(number: int) -> int:
    """The core of this process' ones that the process of this number has for itself, where there
    are as many.
    """
    cores = sorted(os.sched_getaffinity(0))
    return cores[number % len(cores)]


def forked(job: Job, work: Callable[[int], None]) -> None:
    """Have each process of a job work, which is told its number, until all of them are done.

    Forked before any framework is imported, so that the rows are shared and not copied.
    """
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(number,)) for number in range(job.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit(f"a process ended with exit status {worker.exitcode}")


if __name__ == "__main__":
    main()
