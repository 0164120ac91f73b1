"""A peer: model averaging. Two workers have a part of the rows each.

In an epoch, each worker trains every configuration on its part with Keras, from the same weights;
then the weights are averaged. The variables of optimizers stay with their workers.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

from bench.job import Job, parse_arguments, write_result
from bench.keras_config import build, evaluate, prepare, read_architectures, unflatten
from bench.keras_fit import choose_core
from bench.seeds import files, loopback, parts
from bench.seeds.curves import AT_REST, Point, make_result

ADDRESS = (loopback.HOST, loopback.FIRST_PORT)


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    loopback.enable()
    with Listener(ADDRESS) as listener:
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=_serve, args=(job, number)) for number in range(job.processes)
        ]
        for worker in workers:
            worker.start()
        connections = [listener.accept() for _ in workers]
        curves = _train(job, connections)
    for connection, worker in zip(connections, workers, strict=True):
        connection.close()
        worker.join()
    write_result(
        make_result(curves, loopback.count_sent_bytes(), **{AT_REST: files.measure_files(job)}),
        result_path,
    )


def _train(job: Job, connections: list[Connection[Any, Any]]) -> dict[int, list[Point]]:
    session = job.connect()
    flat = [np.frombuffer(weights, "<f4") for _, weights in read_architectures(session, job.models)]
    session.close()
    means: dict[int, Any] = {
        number: flat[config.model - 1] for number, config in enumerate(job.configs)
    }
    curves: dict[int, list[Point]] = {number + 1: [] for number in means}
    for _ in range(job.epochs):
        for number, mean in means.items():
            worker_weights = _ask_all(connections, (number, mean, True))
            means[number] = np.mean(worker_weights, axis=0, dtype=np.float32)
        for first in range(0, len(means), len(connections)):
            numbers = range(first, min(first + len(connections), len(means)))
            for number, connection in zip(numbers, connections, strict=False):
                connection.send((number, means[number], False))
            for number, connection in zip(numbers, connections, strict=False):
                curves[number + 1].append(Point(time.time(), *connection.recv()))
    return curves


def _ask_all(connections: list[Connection[Any, Any]], request: tuple[int, Any, bool]) -> list[Any]:
    for connection in connections:
        connection.send(request)
    return [connection.recv() for connection in connections]


def _serve(job: Job, number: int) -> None:
    """Train or evaluate configurations from received weights; their models are kept."""
    connection = Client(ADDRESS)
    worker_data = parts.WorkerData(job, number, job.processes)
    keras = prepare(job.framework, [choose_core(number)])
    keras.utils.set_random_seed(job.seed + number)
    models = {
        config_number: build(
            keras, worker_data.architectures[config.model - 1], config, job.settings
        )
        for config_number, config in enumerate(job.configs)
    }
    shapes = {
        config_number: [weight.shape for weight in model.weights]
        for config_number, model in models.items()
    }
    while (request := _receive(connection)) is not None:
        config_number, weights, training = request
        model = models[config_number]
        model.set_weights(unflatten(weights.tobytes(), shapes[config_number]))
        if not training:
            connection.send(evaluate(model, worker_data.valid))
            continue
        model.fit(*worker_data.train, batch_size=job.configs[config_number].batch_size, verbose=0)
        connection.send(np.concatenate([array.ravel() for array in model.get_weights()]))


def _receive(connection: Connection[Any, Any]) -> Any:
    try:
        return connection.recv()
    except EOFError:
        return None


if __name__ == "__main__":
    main()
