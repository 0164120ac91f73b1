"""A peer: Ray Tune, over rows that are read once and put once into its object store.

Two trials run at a time, each on a core of its own. Their processes are reused for later trials
(`reuse_actors`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import TrialScheduler

from bench.job import Job, Result, parse_arguments, write_result
from bench.keras_config import encode_one_hot, prepare, read
from bench.keras_fit import fit_config

CORES = {"cpu": 1.0}
PAUSE_SECONDS = 0.05


class Trial(tune.Trainable):  # type: ignore[misc]
    """A trial that trains one configuration in one step."""

    def setup(self, config: dict[str, Any], job: Job, shared: Any) -> None:
        """Load the framework and map the rows in a new process."""
        self.job = job
        self.shared = shared
        self.keras = prepare(job.framework, [self._take_core(Path(job.folder))])
        self.number = config["number"]

    def _take_core(self, folder: Path) -> int:
        """Lock a core for the life of this process and return it, because Ray only counts cores."""
        while True:
            for core in sorted(os.sched_getaffinity(0)):
                self.lock = (folder / f"core-{core}").open("w")
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return core
            time.sleep(PAUSE_SECONDS)

    def step(self) -> dict[str, Any]:
        """Train the configuration; return its loss and accuracy."""
        loss, accuracy = fit_config(self.keras, self.job, self.number, *self.shared)
        return {"loss": loss, "accuracy": accuracy, "number": self.number, "done": True}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take the next configuration in the process of an ended trial."""
        self.number = new_config["number"]
        return True


def main() -> None:
    """Do the job of the command line, configurations with most steps first."""
    job, result_path = parse_arguments()
    order = sorted(range(len(job.configs)), key=lambda number: job.configs[number].batch_size)
    write_result(run_trials(Trial, job, order), result_path)


def run_trials(
    kind: type[Trial], job: Job, order: list[int], scheduler: TrialScheduler | None = None
) -> Result:
    """Run a trial of each configuration in an order; return the result."""
    rows, architectures, received = read(job)
    train, valid = (encode_one_hot(examples, job.classes) for examples in rows)
    ray.init(
        num_cpus=job.processes,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )
    shared = (architectures, train, valid)
    trainable = tune.with_resources(tune.with_parameters(kind, job=job, shared=shared), CORES)
    results = tune.Tuner(
        trainable,
        param_space={"number": tune.grid_search(order)},
        tune_config=tune.TuneConfig(
            max_concurrent_trials=job.processes, reuse_actors=True, scheduler=scheduler
        ),
        run_config=tune.RunConfig(
            storage_path=os.path.join(job.folder, kind.__name__),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            verbose=0,
        ),
    ).fit()
    if results.errors:
        raise SystemExit(f"Error: {results.errors[0]}")
    metrics = [results[position].metrics for position in range(len(results))]
    scores = {m["number"] + 1: (m["loss"], m["accuracy"]) for m in metrics if m is not None}
    stored = sum(array.nbytes for part in (train, valid) for array in part)
    ray.shutdown()
    return Result(scores=scores, moved_bytes=received + stored)


if __name__ == "__main__":
    main()
