"""Find the best compile settings of plain Keras for a workload by timing some steps.

The measure is the estimated time of a whole configuration: the first steps, which compile, and all
others at the measured speed. The search is not charged to the contender.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from typing import Any

from bench.job import Job, Result, parse_arguments, write_result
from bench.keras_config import Architectures, build, encode_one_hot, prepare, read

STEPS = 48
EXECUTIONS = {"tensorflow": (1, 24), "jax": (1, 24), "torch": (1,)}
# On JAX, Keras always compiles; its setting for "not" would compile nothing at all. With PyTorch,
# it would need a C++ compiler, which a server rarely has.
COMPILE_CHOICES = {"tensorflow": (False, True), "jax": (True,), "torch": (False,)}
ENOUGH_SECONDS = 10.0
"""A candidate with longer first steps is not run again."""


def main() -> None:
    """Time all candidates, and write the best settings into the result."""
    job, result_path = parse_arguments()
    rows, architectures, _ = read(job)
    cores = sorted(os.sched_getaffinity(0))
    keras = prepare(job.framework, [cores[list(COMPILE_CHOICES).index(job.framework) % len(cores)]])
    train = encode_one_hot(rows[0], job.classes)
    candidates = []
    for steps, is_compiled in itertools.product(
        EXECUTIONS[job.framework], COMPILE_CHOICES[job.framework]
    ):
        settings = {"steps_per_execution": steps, "jit_compile": is_compiled}
        began = time.perf_counter()
        candidates.append((estimate_seconds(keras, job, architectures, train, settings), settings))
        if time.perf_counter() - began > 2 * ENOUGH_SECONDS:
            break
    candidates.sort(key=lambda pair: pair[0])
    best = candidates[0][1]
    more = {"settings": best, "seconds": [[seconds, settings] for seconds, settings in candidates]}
    write_result(Result(scores={}, moved_bytes=0, more=more), result_path)


def estimate_seconds(
    keras: Any,
    job: Job,
    architectures: Architectures,
    train: tuple[Any, Any],
    settings: dict[str, Any],
) -> float:
    """Return the estimated seconds of the configuration with the smallest batch."""
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
