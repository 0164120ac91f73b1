"""A peer: Ray Tune. The rows are read once and put once into its object store; two trials run at a
time, each on a core of its own, in processes that are used again for later trials (`reuse_actors`).
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

from bench.job import Job, Result, arguments, write_result
from bench.keras_config import one_hot, prepare, read
from bench.keras_fit import fitted

CORES = {"cpu": 1.0}
PAUSE_SECONDS = 0.05


class Trial(tune.Trainable):  # type: ignore[misc]
    """Trains one configuration in one step."""

    def setup(self, config: dict[str, Any], job: Job, shared: Any) -> None:
        """In a new process: load the framework, and map the rows."""
        self.job, self.shared = job, shared
        self.keras = prepare(job.framework, [self._take_core(Path(job.folder))])
        self.number = config["number"]

    def _take_core(self, folder: Path) -> int:
        """A core that no other process of this run has, as long as this process lives: Ray counts
        cores only.
        """
        while True:
            for core in sorted(os.sched_getaffinity(0)):
                self.lock = (folder / f"core-{core}").open("w")
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return core
            time.sleep(PAUSE_SECONDS)

    def step(self) -> dict[str, Any]:
        """The whole training, and its loss and accuracy."""
        loss, accuracy = fitted(self.keras, self.job, self.number, *self.shared)
        return {"loss": loss, "accuracy": accuracy, "number": self.number, "done": True}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """In a process that has done a trial: take the next."""
        self.number = new_config["number"]
        return True


def main() -> None:
    """Do the job that the command line names, those with most steps first."""
    job, result_path = arguments()
    order = sorted(range(len(job.configs)), key=lambda number: job.configs[number].batch_size)
    write_result(tuned(Trial, job, order), result_path)


def tuned(
    kind: type[Trial], job: Job, order: list[int], scheduler: TrialScheduler | None = None
) -> Result:
    """What a trial of each configuration comes to, in this order."""
    rows, architectures, received = read(job)
    train, valid = (one_hot(examples, job.classes) for examples in rows)
    ray.init(
        num_cpus=job.processes,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )
    shared = (architectures, train, valid)
    trainable = tune.with_resources(tune.with_parameters(kind, job=job, shared=shared), CORES)
    found = tune.Tuner(
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
    if found.errors:
        raise SystemExit(f"Error: {found.errors[0]}")
    told = [found[position].metrics for position in range(len(found))]
    scores = {m["number"] + 1: (m["loss"], m["accuracy"]) for m in told if m is not None}
    stored = sum(array.nbytes for part in (train, valid) for array in part)
    ray.shutdown()
    return Result(scores=scores, moved_bytes=received + stored)


if __name__ == "__main__":
    main()
