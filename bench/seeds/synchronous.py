"""A peer: synchronous data parallelism of TensorFlow.

Two workers have a part of the rows each. At each step, each worker trains on a batch, and all
workers apply the mean of the gradients, which are reduced in one piece.

All steps of an epoch are one graph, which suits this peer best. The configurations are trained one
after another.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from typing import Any

from bench.job import Job, parse_arguments, write_result
from bench.keras_config import prepare
from bench.keras_fit import choose_core, run_processes
from bench.seeds import files, loopback, parts
from bench.seeds.curves import AT_REST, Point, make_result

HEARTBEAT_TIMEOUT_MILLISECONDS = 120_000


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    loopback.enable()
    results = multiprocessing.get_context("fork").SimpleQueue()

    def work(number: int) -> None:
        curves = train(job, number)
        if number == 0:
            results.put(curves)

    run_processes(job, work)
    write_result(
        make_result(
            results.get(), loopback.count_sent_bytes(), **{AT_REST: files.measure_files(job)}
        ),
        result_path,
    )


def train(job: Job, number: int) -> dict[int, list[Point]]:
    """Train all configurations as the worker with a number; return their curves."""
    hosts = [f"{loopback.HOST}:{loopback.FIRST_PORT + worker}" for worker in range(job.processes)]
    task = {"type": "worker", "index": number}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": hosts}, "task": task})
    worker_data = parts.WorkerData(job, number, job.processes)
    keras = prepare(job.framework, [choose_core(number)])
    import tensorflow as tf

    _extend_heartbeat_timeout(job.processes)
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    rows = tuple(tf.constant(array) for array in worker_data.train)
    return {
        config + 1: _train_curve(tf, strategy, (keras, job, config), worker_data, rows)
        for config in range(len(job.configs))
    }


def _extend_heartbeat_timeout(workers: int) -> None:
    """Extend the timeout of ten seconds after which a silent worker is lost, for busy machines.

    TensorFlow has no public function for this. The strategy keeps these settings instead of its
    own.
    """
    from tensorflow.python.distribute.collective_all_reduce_strategy import coordination_config_pb2
    from tensorflow.python.eager import context

    context.context().configure_coordination_service(
        "standalone",
        "/job:worker/replica:0/task:0",
        heartbeat_timeout_in_ms=HEARTBEAT_TIMEOUT_MILLISECONDS,
        coordinated_jobs=[coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=workers)],
    )


def _train_curve(
    tf: Any, strategy: Any, training: tuple[Any, Job, int], worker_data: parts.WorkerData, rows: Any
) -> list[Point]:
    keras, job, config = training
    network = parts.Network(
        keras, worker_data.architectures[job.configs[config].model - 1], job.configs[config]
    )
    shapes = [variable.shape for variable in network.variables]
    sizes = [shape.num_elements() for shape in shapes]

    def step(batch: Any) -> None:
        gradients = network.gradients(*(tf.gather(array, batch) for array in rows))
        flat = tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], 0)
        mean = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, flat)
        network.apply(
            [tf.reshape(part, s) for part, s in zip(tf.split(mean, sizes), shapes, strict=True)]
        )

    @tf.function  # type: ignore[untyped-decorator]
    def epoch(order: Any) -> None:
        for batch in order:
            strategy.run(step, args=(batch,))

    points = []
    for number in range(job.epochs):
        epoch(tf.constant(parts.draw_batches(job, config, number, len(rows[0]))))
        points.append(network.point(worker_data.valid))
    return points


if __name__ == "__main__":
    main()
