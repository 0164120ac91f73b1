"""A peer: plain Keras. The rows are read once, and configurations are trained with `fit`.

One process trains one configuration after another, or several processes share them. Each of
several processes is bound to a core of its own, and takes the next configuration, those with most
steps first. No core waits while there are configurations.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

from bench.job import Job, Result, parse_arguments, write_result
from bench.keras_config import Architectures, build, encode_one_hot, evaluate, prepare, read


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    rows, architectures, received = read(job)
    train, valid = (encode_one_hot(examples, job.classes) for examples in rows)
    order = sorted(range(len(job.configs)), key=lambda number: job.configs[number].batch_size)
    if job.processes == 1:
        keras = prepare(job.framework)
        scores = [(n, *fit_config(keras, job, n, architectures, train, valid)) for n in order]
    else:
        scores = _fit_in_processes(job, order, architectures, train, valid)
    result = Result(
        scores={n + 1: (loss, accuracy) for n, loss, accuracy in scores}, moved_bytes=received
    )
    write_result(result, result_path)


def fit_config(
    keras: Any,
    job: Job,
    number: int,
    architectures: Architectures,
    train: tuple[Any, Any],
    valid: tuple[Any, Any],
) -> tuple[float, float]:
    """Train one configuration; return its loss and accuracy on the validation rows."""
    config = job.configs[number]
    model = _build_model(keras, job, number, architectures)
    model.fit(*train, batch_size=config.batch_size, epochs=job.epochs, verbose=0)
    return evaluate(model, valid)


def fit_epochs(
    keras: Any,
    job: Job,
    number: int,
    architectures: Architectures,
    train: tuple[Any, Any],
    valid: tuple[Any, Any],
) -> Iterator[tuple[float, float]]:
    """Train one configuration; yield its loss and accuracy after each epoch."""
    config = job.configs[number]
    model = _build_model(keras, job, number, architectures)
    for _ in range(job.epochs):
        model.fit(*train, batch_size=config.batch_size, verbose=0)
        yield evaluate(model, valid)


def _build_model(keras: Any, job: Job, number: int, architectures: Architectures) -> Any:
    config = job.configs[number]
    keras.backend.clear_session()
    keras.utils.set_random_seed(job.seed + number)
    return build(keras, architectures[config.model - 1], config, job.settings)


def _fit_in_processes(
    job: Job,
    order: list[int],
    architectures: Architectures,
    train: tuple[Any, Any],
    valid: tuple[Any, Any],
) -> list[tuple[int, float, float]]:
    context = multiprocessing.get_context("fork")
    pending = context.SimpleQueue()
    results = context.SimpleQueue()
    for number in [*order, *[None] * job.processes]:
        pending.put(number)

    def work(process: int) -> None:
        keras = prepare(job.framework, [choose_core(process)])
        while (number := pending.get()) is not None:
            results.put((number, *fit_config(keras, job, number, architectures, train, valid)))

    run_processes(job, work)
    scores: list[tuple[int, float, float]] = []
    while not results.empty():
        scores.append(results.get())
    return scores


def choose_core(number: int) -> int:
    """Return the core of the process with a number, its own one if there are enough."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[number % len(cores)]


def run_processes(job: Job, work: Callable[[int], None]) -> None:
    """Run a function with its number in each process of a job, and wait for all of them.

    The processes are forked before any framework is imported, so that they share the rows.
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
