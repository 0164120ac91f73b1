"""A peer: an asynchronous parameter server of TensorFlow.

A process has the variables. Each of two workers has a part of the rows. For each batch it reads the
variables, and its gradients are applied to their current values.

All batches of an epoch are one graph, which reads and writes across processes; that suits this peer
best. The configurations are trained one after another. An epoch ends when both workers have
completed their parts.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any

from bench.job import Job, parse_arguments, write_result
from bench.keras_config import prepare
from bench.keras_fit import choose_core
from bench.seeds import files, loopback, parts
from bench.seeds.curves import AT_REST, Point, make_result

SERVER = "ps"
WORKER = "worker"


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    loopback.enable()
    worker_data = [parts.WorkerData(job, number, job.processes) for number in range(job.processes)]
    tasks = [(SERVER, 0), *((WORKER, number) for number in range(job.processes))]
    hosts: dict[str, list[str]] = {SERVER: [], WORKER: []}
    for port, (name, _) in enumerate(tasks, loopback.FIRST_PORT):
        hosts[name].append(f"{loopback.HOST}:{port}")
    servers = [_start_server(job, hosts, task) for task in tasks]
    try:
        curves = _train(job, hosts, worker_data)
    finally:
        for server in servers:
            server.kill()
            server.join()
    write_result(
        make_result(curves, loopback.count_sent_bytes(), **{AT_REST: files.measure_files(job)}),
        result_path,
    )


def _start_server(job: Job, hosts: dict[str, list[str]], task: tuple[str, int]) -> BaseProcess:
    """Start a process that executes the coordinator's requests; a worker has its own core."""
    server = multiprocessing.get_context("fork").Process(target=_serve, args=(job, hosts, task))
    server.start()
    return server


def _serve(job: Job, hosts: dict[str, list[str]], task: tuple[str, int]) -> None:
    name, number = task
    prepare(job.framework, [choose_core(number)] if name == WORKER else None)
    import tensorflow as tf

    tf.distribute.Server(
        tf.train.ClusterSpec(hosts), job_name=name, task_index=number, protocol="grpc"
    ).join()


def _train(
    job: Job, hosts: dict[str, list[str]], worker_data: list[parts.WorkerData]
) -> dict[int, list[Point]]:
    keras = prepare(job.framework)
    import tensorflow as tf

    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(hosts))
    rows = []
    for number, part in enumerate(worker_data):
        with tf.device(f"/job:{WORKER}/task:{number}"):
            rows.append(tuple(tf.identity(array) for array in part.train))
    return {
        config + 1: _train_curve(tf, (keras, job, config), worker_data[0], rows)
        for config in range(len(job.configs))
    }


def _train_curve(
    tf: Any, training: tuple[Any, Job, int], worker_data: parts.WorkerData, rows: list[Any]
) -> list[Point]:
    keras, job, config = training
    architecture = worker_data.architectures[job.configs[config].model - 1]
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
                tf.identity(
                    parts.draw_batches(job, config, number * len(rows) + worker, x.shape[0])
                ),
            )

    points = []
    with ThreadPoolExecutor(len(rows)) as pool:
        for number in range(job.epochs):
            list(pool.map(lambda worker, at=number: epoch(worker, at), range(len(rows))))
            points.append(network.point(worker_data.valid))
    return points


if __name__ == "__main__":
    main()
