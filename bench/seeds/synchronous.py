"""A peer: synchronous data parallelism. Two workers of TensorFlow have a part of the rows each; at
each step each trains on a batch, and the mean of their gradients, which goes round in one piece, is
applied by all.

All steps of an epoch are one graph, as it suits this peer best. The configurations are trained one
after another.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from typing import Any

from bench.job import Job, arguments, write_result
from bench.keras_config import prepare
from bench.keras_fit import core, forked
from bench.seeds import files, loopback, parts
from bench.seeds.curves import AT_REST, Point, make_result

PATIENCE_MILLISECONDS = 120_000


def main() -> None:
    """Do the job of the command line."""
    job, result_path = arguments()
    loopback.opened()
    done = multiprocessing.get_context("fork").SimpleQueue()

    def work(number: int) -> None:
        curves = trained(job, number)
        if number == 0:
            done.put(curves)

    forked(job, work)
    write_result(
        make_result(done.get(), loopback.sent(), **{AT_REST: files.size(job)}), result_path
    )


def trained(job: Job, number: int) -> dict[int, list[Point]]:
    """The curves of all configurations, in the worker of this number."""
    hosts = [f"{loopback.HOST}:{loopback.FIRST_PORT + worker}" for worker in range(job.processes)]
    task = {"type": "worker", "index": number}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": hosts}, "task": task})
    read = parts.Read(job, number, job.processes)
    keras = prepare(job.framework, [core(number)])
    import tensorflow as tf

    _be_patient(job.processes)
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    rows = tuple(tf.constant(array) for array in read.train)
    return {
        config + 1: _curve(tf, strategy, (keras, job, config), read, rows)
        for config in range(len(job.configs))
    }


def _be_patient(workers: int) -> None:
    """Let a worker not be given up that has not been heard of for ten seconds: on a busy machine
    that happens.

    TensorFlow has no public way to say so. What the strategy would configure by itself it leaves as
    it is here.
    """
    from tensorflow.python.distribute.collective_all_reduce_strategy import coordination_config_pb2
    from tensorflow.python.eager import context

    context.context().configure_coordination_service(
        "standalone",
        "/job:worker/replica:0/task:0",
        heartbeat_timeout_in_ms=PATIENCE_MILLISECONDS,
        coordinated_jobs=[coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=workers)],
    )


def _curve(
    tf: Any, strategy: Any, what: tuple[Any, Job, int], read: parts.Read, rows: Any
) -> list[Point]:
    keras, job, config = what
    network = parts.Network(
        keras, read.architectures[job.configs[config].model - 1], job.configs[config]
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
        epoch(tf.constant(parts.batches(job, config, number, len(rows[0]))))
        points.append(network.point(read.valid))
    return points


if __name__ == "__main__":
    main()
