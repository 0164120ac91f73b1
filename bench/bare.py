"""Time the bare loops: trainers without a server, over arrays in memory.

The configurations are shared among as many trainers as in a run of ours, with the same threads.
Each trainer trains its configurations on the packed buffers, over the wire protocol. Every program
is used once before the measurement. The times are therefore those of the loops over batches, the
least that our training can take on these cores.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from trainer_peer import Peer

from bench.job import Job, Result, parse_arguments, write_result
from bench.keras_config import Architectures, read_architectures
from bench.workloads import Config

BEST_FORM: dict[str, Any] = {"use": None, "remaining_rows": 1 << 40, "known": {}}
"""With so many remaining rows every form is worth timing, so the fastest one is chosen."""

CHUNK_BYTES = 1 << 20
Buffers = list[list[tuple[str, Any]]]


def main() -> None:
    """Time the loops of the command line's job, summed over the visits of each epoch."""
    job, result_path = parse_arguments()
    session = job.connect()
    partitions = [read_buffers(session, job.packed, segment) for segment in range(job.segments)]
    architectures = read_architectures(session, job.models)
    session.close()
    trainers = max(1, min(job.segments, len(os.sched_getaffinity(0))))
    shares = [range(first, len(job.configs), trainers) for first in range(trainers)]
    with ThreadPoolExecutor(trainers) as pool:
        loops = [pool.submit(time_loops, job, partitions, architectures, share) for share in shares]
        configs = [epochs for loop in loops for epochs in loop.result()]
    epochs = [sum(epoch) for epoch in zip(*configs, strict=True)]
    write_result(
        Result(scores={}, moved_bytes=0, more={"epochs": epochs, "trainers": trainers}), result_path
    )


def read_buffers(session: Any, packed: str, segment: int) -> Buffers:
    """Return the arrays of a segment's buffers, in order."""
    with session.cursor() as cursor:
        cursor.execute(
            f"SELECT x, x_shape, y, y_shape FROM {packed} WHERE __dist_key__ = %s ORDER BY "
            "buffer_id",
            (segment,),
        )
        return [
            [
                ("x", np.frombuffer(x, "<f4").reshape(x_shape)),
                ("y", np.frombuffer(y, "<i2").reshape(y_shape)),
            ]
            for x, x_shape, y, y_shape in cursor
        ]


def time_loops(
    job: Job, partitions: list[Buffers], architectures: Architectures, share: range
) -> list[list[float]]:
    """Return the seconds of each epoch of some configurations, which one trainer trains."""
    peer = Peer(job.framework, threads=max(1, len(os.sched_getaffinity(0)) // job.segments))
    peer.socket.settimeout(None)
    with peer:
        for segment, partition in enumerate(partitions):
            peer.load(str(segment), partition, 1 << 40)
        for number in share:
            list(train_config(peer, job, architectures, number, epochs=1))
        return [
            list(train_config(peer, job, architectures, number, epochs=job.epochs))
            for number in share
        ]


def train_config(
    peer: Peer, job: Job, architectures: Architectures, number: int, epochs: int
) -> Iterator[float]:
    """Train one configuration for some epochs; yield the seconds of the loops of each epoch."""
    config = job.configs[number]
    architecture, weights = architectures[config.model - 1]
    program = make_program(json.loads(architecture), config, job.classes)
    fit = {"batch_size": config.batch_size, "epochs": 1, "shuffle": True}
    state: dict[str, Any] = {"source": "weights", "seed": job.seed}
    for epoch in range(1, epochs + 1):
        seconds = 0.0
        for segment in range(job.segments):
            order = {
                "seed": job.seed,
                "mst_key": number + 1,
                "epoch": epoch,
                "segment_id": segment,
            }
            peer.begin(
                "train", program, state, [str(segment)], fit=fit, order=order, forms=BEST_FORM
            )
            if state["source"] == "weights":
                peer.send_state(weights, CHUNK_BYTES)
            seconds += peer.ask({"do": "finish"})["seconds"]
            state = {"source": "kept", "key": "result"}
        yield seconds


def make_program(architecture: dict[str, Any], config: Config, classes: int) -> dict[str, Any]:
    """Return the program of a configuration in the wire protocol."""
    optimizer = {"class_name": config.optimizer, "config": {"learning_rate": config.learning_rate}}
    compile_args = {
        "optimizer": optimizer,
        "loss": "categorical_crossentropy",
        "metrics": ["accuracy"],
    }
    return {
        "architecture": architecture,
        "compile": {**compile_args, "loss_weights": None, "weighted_metrics": None},
        "targets": [{"kind": "onehot", "classes": classes}],
    }


if __name__ == "__main__":
    main()
