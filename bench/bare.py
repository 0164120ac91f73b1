"""The bare loops: trainers alone, without a server, over arrays that they hold in memory.

As many trainers as a run of ours has, with the same threads, share the configurations; each trains
its configurations on the packed buffers, driven over the wire protocol. Every program is used once
before anything counts, so that only the loops over batches are left: the least that our training
can take on these cores.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from trainer_peer import Peer

from bench.job import Job, Result, arguments, write_result
from bench.keras_config import Architectures, read_architectures
from bench.workloads import Config

BEST_FORM: dict[str, Any] = {"use": None, "remaining_rows": 1 << 40, "known": {}}
"""With so much work ahead every form is worth trying, so the fastest is found."""

CHUNK_BYTES = 1 << 20
Buffers = list[list[tuple[str, Any]]]


def main() -> None:
    """Time the loops of the job that the command line names: sums over all visits of each epoch,
    and how many trainers shared them."""
    job, place = arguments()
    session = job.connect()
    partitions = [buffers(session, job.packed, segment) for segment in range(job.segments)]
    architectures = read_architectures(session, job.models)
    session.close()
    trainers = max(1, min(job.segments, len(os.sched_getaffinity(0))))
    shares = [range(first, len(job.configs), trainers) for first in range(trainers)]
    with ThreadPoolExecutor(trainers) as pool:
        loops = [pool.submit(looped, job, partitions, architectures, share) for share in shares]
        configs = [epochs for loop in loops for epochs in loop.result()]
    epochs = [sum(epoch) for epoch in zip(*configs, strict=True)]
    write_result(Result(scores={}, moved=0, more={"epochs": epochs, "trainers": trainers}), place)


def buffers(session: Any, packed: str, segment: int) -> Buffers:
    """The arrays of a segment's buffers, in order."""
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


def looped(
    job: Job, partitions: list[Buffers], architectures: Architectures, share: range
) -> list[list[float]]:
    """Seconds of each epoch of these configurations, which a trainer trains one after another."""
    peer = Peer(job.framework, threads=max(1, len(os.sched_getaffinity(0)) // job.segments))
    peer.socket.settimeout(None)
    with peer:
        for segment, partition in enumerate(partitions):
            peer.load(str(segment), partition, 1 << 40)
        for number in share:
            list(trained(peer, job, architectures, number, epochs=1))
        return [
            list(trained(peer, job, architectures, number, epochs=job.epochs)) for number in share
        ]


def trained(
    peer: Peer, job: Job, architectures: Architectures, number: int, epochs: int
) -> Iterator[float]:
    """Train one configuration for some epochs; seconds within the loops of each."""
    config = job.configs[number]
    architecture, weights = architectures[config.model - 1]
    program = described(json.loads(architecture), config, job.classes)
    fit = {"batch_size": config.batch_size, "epochs": 1, "shuffle": True}
    state: dict[str, Any] = {"source": "weights", "seed": job.seed}
    for epoch in range(1, epochs + 1):
        seconds = 0.0
        for segment in range(job.segments):
            place = {"seed": job.seed, "mst_key": number + 1, "epoch": epoch, "segment_id": segment}
            peer.begin(
                "train", program, state, [str(segment)], fit=fit, order=place, forms=BEST_FORM
            )
            if state["source"] == "weights":
                peer.send_state(weights, CHUNK_BYTES)
            seconds += peer.ask({"do": "finish"})["seconds"]
            state = {"source": "kept", "key": "result"}
        yield seconds


def described(architecture: dict[str, Any], config: Config, classes: int) -> dict[str, Any]:
    """The program of a configuration as the wire protocol has it."""
    optimizer = {"class_name": config.optimizer, "config": {"learning_rate": config.learning_rate}}
    compiled = {"optimizer": optimizer, "loss": "categorical_crossentropy", "metrics": ["accuracy"]}
    return {
        "architecture": architecture,
        "compile": {**compiled, "loss_weights": None, "weighted_metrics": None},
        "targets": [{"kind": "onehot", "classes": classes}],
    }


if __name__ == "__main__":
    main()
