"""Finds the best compile settings of plain Keras for a workload, by timing some steps of each
candidate.

What counts is the time that a whole configuration would take: that of the first steps, which
compile, and that of all others at the speed then seen. Finding out is not charged to the contender.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from typing import Any

from bench.job import Job, Result, arguments, write_result
from bench.keras_config import Architectures, build, one_hot, prepare, read

STEPS = 48
EXECUTIONS = {"tensorflow": (1, 24), "jax": (1, 24), "torch": (1,)}
# Keras compiles on JAX always; its setting for "not" runs without compiling anything. With PyTorch
# it would need a compiler of C++, which a server rarely has.
COMPILED = {"tensorflow": (False, True), "jax": (True,), "torch": (False,)}
ENOUGH_SECONDS = 10.0
"""A candidate whose first steps take longer is not run again."""


def main() -> None:
    """Time all candidates; the best settings are in the result."""
    job, result_path = arguments()
    rows, architectures, _ = read(job)
    cores = sorted(os.sched_getaffinity(0))
    keras = prepare(job.framework, [cores[list(COMPILED).index(job.framework) % len(cores)]])
    train = one_hot(rows[0], job.classes)
    found = []
    for steps, compiled in itertools.product(EXECUTIONS[job.framework], COMPILED[job.framework]):
        settings = {"steps_per_execution": steps, "jit_compile": compiled}
        began = time.perf_counter()
        found.append((predicted(keras, job, architectures, train, settings), settings))
        if time.perf_counter() - began > 2 * ENOUGH_SECONDS:
            break
    found.sort(key=lambda pair: pair[0])
    best = found[0][1]
    more = {"settings": best, "seconds": [[seconds, settings] for seconds, settings in found]}
    write_result(Result(scores={}, moved_bytes=0, more=more), result_path)


def predicted(
    keras: Any,
    job: Job,
    architectures: Architectures,
    train: tuple[Any, Any],
    settings: dict[str, Any],
) -> float:
    """Seconds that the configuration with the smallest batch would take with these settings."""
    config = min(job.configs, key=lambda config: config.batch_size)
    rows = min(len(train[0]), STEPS * config.batch_size)
    part = [array[:rows] for array in train]
    keras.backend.clear_session()
    model = build(keras, architectures[config.model - 1], config, settings)
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        model.fit(*part, batch_size=config.batch_size, verbose=0)
        seconds.append(time.perf_counter() - began)
        if seconds[0] > ENOUGH_SECONDS:
            break
    steps = job.epochs * math.ceil(len(train[0]) / config.batch_size)
    return seconds[0] - seconds[-1] + seconds[-1] * steps / math.ceil(rows / config.batch_size)


if __name__ == "__main__":
    main()
