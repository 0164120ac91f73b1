"""A peer: model averaging. Two workers have a part of the rows each. In an epoch each trains every
configuration on its part by Keras, from the same weights; then these are averaged. What an
optimizer knows stays with its worker."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

from bench.job import Job, arguments, write_result
from bench.keras_config import build, evaluate, prepare, read_architectures, unflattened
from bench.keras_fit import core
from bench.seeds import files, loopback, parts
from bench.seeds.curves import AT_REST, Point, make_result

ADDRESS = (loopback.HOST, loopback.FIRST_PORT)


def main() -> None:
    """Do the job of the command line."""
    job, result_path = arguments()
    loopback.opened()
    with Listener(ADDRESS) as listener:
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=_serve, args=(job, number)) for number in range(job.processes)
        ]
        for worker in workers:
            worker.start()
        links = [listener.accept() for _ in workers]
        found = _trained(job, links)
    for link, worker in zip(links, workers, strict=True):
        link.close()
        worker.join()
    write_result(make_result(found, loopback.sent(), **{AT_REST: files.size(job)}), result_path)


def _trained(job: Job, links: list[Connection[Any, Any]]) -> dict[int, list[Point]]:
    session = job.connect()
    flat = [np.frombuffer(weights, "<f4") for _, weights in read_architectures(session, job.models)]
    session.close()
    means: dict[int, Any] = {
        number: flat[config.model - 1] for number, config in enumerate(job.configs)
    }
    curves: dict[int, list[Point]] = {number + 1: [] for number in means}
    for _ in range(job.epochs):
        for number, mean in means.items():
            left = _asked(links, (number, mean, True))
            means[number] = np.mean(left, axis=0, dtype=np.float32)
        for first in range(0, len(means), len(links)):
            numbers = range(first, min(first + len(links), len(means)))
            for number, link in zip(numbers, links, strict=False):
                link.send((number, means[number], False))
            for number, link in zip(numbers, links, strict=False):
                curves[number + 1].append(Point(time.time(), *link.recv()))
    return curves


def _asked(links: list[Connection[Any, Any]], request: tuple[int, Any, bool]) -> list[Any]:
    for link in links:
        link.send(request)
    return [link.recv() for link in links]


def _serve(job: Job, number: int) -> None:
    """Train or evaluate one configuration from given weights, as often as it is asked for; its
    model stays.
    """
    link = Client(ADDRESS)
    read = parts.Read(job, number, job.processes)
    keras = prepare(job.framework, [core(number)])
    keras.utils.set_random_seed(job.seed + number)
    models = {
        at: build(keras, read.architectures[config.model - 1], config, job.settings)
        for at, config in enumerate(job.configs)
    }
    shapes = {at: [weight.shape for weight in model.weights] for at, model in models.items()}
    while (request := _next(link)) is not None:
        at, weights, training = request
        model = models[at]
        model.set_weights(unflattened(weights.tobytes(), shapes[at]))
        if not training:
            link.send(evaluate(model, read.valid))
            continue
        model.fit(*read.train, batch_size=job.configs[at].batch_size, verbose=0)
        link.send(np.concatenate([array.ravel() for array in model.get_weights()]))


def _next(link: Connection[Any, Any]) -> Any:
    try:
        return link.recv()
    except EOFError:
        return None


if __name__ == "__main__":
    main()
