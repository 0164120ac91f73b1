"""A peer: an asynchronous parameter server. A process of TensorFlow has the variables; each of two
workers has a part of the rows, and for each batch reads the variables, and has its gradients
applied to them as they are then.

All batches of an epoch are one graph, which reads and writes across processes, as it suits this
peer best. The configurations are trained one after another; an epoch ends when both workers have
done their part of it.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any

from bench.job import Job, arguments, write_result
from bench.keras_config import prepare
from bench.keras_fit import core
from bench.seeds import files, loopback, parts
from bench.seeds.curves import AT_REST, Point, make_result

SERVER, WORKER = "ps", "worker"


def main() -> None:
    """Do the job of the command line."""
    job, result_path = arguments()
    loopback.opened()
    read = [parts.Read(job, number, job.processes) for number in range(job.processes)]
    tasks = [(SERVER, 0), *((WORKER, number) for number in range(job.processes))]
    hosts: dict[str, list[str]] = {SERVER: [], WORKER: []}
    for port, (name, _) in enumerate(tasks, loopback.FIRST_PORT):
        hosts[name].append(f"{loopback.HOST}:{port}")
    servers = [_server(job, hosts, task) for task in tasks]
    try:
        found = _trained(job, hosts, read)
    finally:
        for server in servers:
            server.kill()
            server.join()
    write_result(make_result(found, loopback.sent(), **{AT_REST: files.size(job)}), result_path)


def _server(job: Job, hosts: dict[str, list[str]], task: tuple[str, int]) -> BaseProcess:
    """A process that does what the coordinator asks of it; a worker has a core of its own."""
    server = multiprocessing.get_context("fork").Process(target=_serve, args=(job, hosts, task))
    server.start()
    return server


def _serve(job: Job, hosts: dict[str, list[str]], task: tuple[str, int]) -> None:
    name, number = task
    prepare(job.framework, [core(number)] if name == WORKER else None)
    import tensorflow as tf

    tf.distribute.Server(
        tf.train.ClusterSpec(hosts), job_name=name, task_index=number, protocol="grpc"
    ).join()


def _trained(
    job: Job, hosts: dict[str, list[str]], read: list[parts.Read]
) -> dict[int, list[Point]]:
    keras = prepare(job.framework)
    import tensorflow as tf

    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(hosts))
    rows = []
    for number, part in enumerate(read):
        with tf.device(f"/job:{WORKER}/task:{number}"):
            rows.append(tuple(tf.identity(array) for array in part.train))
    return {
        config + 1: _curve(tf, (keras, job, config), read[0], rows)
        for config in range(len(job.configs))
    }


def _curve(tf: Any, what: tuple[Any, Job, int], read: parts.Read, rows: list[Any]) -> list[Point]:
    keras, job, config = what
    architecture = read.architectures[job.configs[config].model - 1]
    with tf.device(f"/job:{SERVER}/task:0"):
        network = parts.Network(keras, architecture, job.configs[config])

    @tf.function  # type: ignore[untyped-decorator]
    def train(x: Any, y: Any, order: Any) -> None:
        for batch in order:
            network.apply(network.gradients(tf.gather(x, batch), tf.gather(y, batch)))

    def epoch(worker: int, number: int) -> None:
        with tf.device(f"/job:{WORKER}/task:{worker}"):
            x, y = rows[worker]
            train(
                x,
                y,
                tf.identity(parts.batches(job, config, number * len(rows) + worker, x.shape[0])),
            )

    points = []
    with ThreadPoolExecutor(len(rows)) as pool:
        for number in range(job.epochs):
            list(pool.map(lambda worker, at=number: epoch(worker, at), range(len(rows))))
            points.append(network.point(read.valid))
    return points


if __name__ == "__main__":
    main()
