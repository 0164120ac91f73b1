"""A peer: MADlib's model hopping, reimplemented from its description, without its SQL.

Two processes have a segment each. An epoch has as many hops as configurations, or as segments if
these are more. In a hop each segment trains another configuration: the model is rebuilt from its
JSON and compiled, gets its weights, and is fitted buffer by buffer. Only weights are passed on,
through a table; the optimizer starts anew. All segments wait for the slowest one before the next
hop. At the end each model is rebuilt once more and evaluated.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any

import psycopg2

from bench.bare import read_buffers
from bench.copying import read_table
from bench.job import Job, Result, parse_arguments, write_result
from bench.keras_config import (
    Architectures,
    build,
    encode_one_hot,
    evaluate,
    flatten,
    prepare,
    read_architectures,
)

Call = Callable[[Any], Any]


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    session = job.connect()
    architectures = read_architectures(session, job.models)
    segments = [_Segment(job, architectures, number) for number in range(job.segments)]
    moved_bytes = _train(session, job, architectures, segments)
    scores = _evaluate(session, job, segments)
    for segment in segments:
        segment.end()
    session.close()
    write_result(Result(scores=scores, moved_bytes=moved_bytes), result_path)


class _Segment:
    """A process with one segment's rows."""

    def __init__(self, job: Job, architectures: Architectures, number: int) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, job, architectures, number))
        self._process.start()
        theirs.close()

    def send(self, *request: object) -> None:
        """Send a request."""
        self._pipe.send(request)

    def receive(self) -> Any:
        """Wait for the result of the request; return it."""
        return self._pipe.recv()

    def end(self) -> None:
        """Let the process end."""
        self._pipe.send(None)
        self._process.join()


def _serve(pipe: Pipe, job: Job, architectures: Architectures, number: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    keras = prepare(job.framework, [cores[number % len(cores)]])
    session = job.connect()
    segment_buffers = [
        (dict(buffer)["x"], dict(buffer)["y"].astype("<f4"))
        for buffer in read_buffers(session, job.packed, number)
    ]
    valid = encode_one_hot(read_table(session, job.valid)[0], job.classes)
    session.close()
    while (request := pipe.recv()) is not None:
        kind, config_number, weights = request
        config = job.configs[config_number]
        keras.backend.clear_session()
        model = build(keras, (architectures[config.model - 1][0], weights), config, {})
        if kind == "evaluate":
            pipe.send(evaluate(model, valid))
            continue
        for x, y in segment_buffers:
            model.fit(x, y, batch_size=config.batch_size, epochs=1, verbose=0)
        pipe.send(flatten(model.get_weights()))


def list_hops(configs: int, segments: int) -> list[list[tuple[int, int]]]:
    """Return the hops of an epoch, as pairs of a configuration and the segment that it visits.

    >>> list_hops(3, 2)
    [[(0, 0), (1, 1)], [(1, 0), (2, 1)], [(2, 0), (0, 1)]]
    """
    places = max(configs, segments)
    rings = [
        [((hop + segment) % places, segment) for segment in range(segments)]
        for hop in range(places)
    ]
    return [[(config, segment) for config, segment in ring if config < configs] for ring in rings]


def _train(session: Any, job: Job, architectures: Architectures, segments: list[_Segment]) -> int:
    """Train all epochs; return the bytes that moved through the table of weights."""
    moved_bytes = 0
    with session.cursor() as cursor:
        cursor.execute(
            "DROP TABLE IF EXISTS madlib_weights; CREATE TABLE madlib_weights (config int, "
            "weights bytea)"
        )
        for number, config in enumerate(job.configs):
            first = psycopg2.Binary(architectures[config.model - 1][1])
            cursor.execute("INSERT INTO madlib_weights VALUES (%s, %s)", (number, first))
        for hop in list_hops(len(job.configs), len(segments)) * job.epochs:
            for config_number, segment in hop:
                segments[segment].send("train", config_number, _read_weights(cursor, config_number))
            for config_number, segment in hop:
                weights = segments[segment].receive()
                moved_bytes += 2 * len(weights)
                cursor.execute(
                    "UPDATE madlib_weights SET weights = %s WHERE config = %s",
                    (psycopg2.Binary(weights), config_number),
                )
    return moved_bytes


def _read_weights(cursor: Any, number: int) -> bytes:
    cursor.execute("SELECT weights FROM madlib_weights WHERE config = %s", (number,))
    return bytes(cursor.fetchone()[0])


def _evaluate(session: Any, job: Job, segments: list[_Segment]) -> dict[int, tuple[float, float]]:
    scores: dict[int, tuple[float, float]] = {}
    with session.cursor() as cursor:
        for first in range(0, len(job.configs), len(segments)):
            now = range(first, min(first + len(segments), len(job.configs)))
            for number, segment in zip(now, segments, strict=False):
                segment.send("evaluate", number, _read_weights(cursor, number))
            for number, segment in zip(now, segments, strict=False):
                scores[number + 1] = segment.receive()
        cursor.execute("DROP TABLE madlib_weights")
    return scores


if __name__ == "__main__":
    main()
