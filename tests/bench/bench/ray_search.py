"""A peer: Ray Tune with its ASHA, which stops trials at rungs; else as in `ray_tune`."""

from __future__ import annotations

import os
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler

from bench.job import Job, Result, arguments, write_result
from bench.keras_config import one_hot, read
from bench.keras_fit import epochs
from bench.ray_tune import CORES, Trial

ETA = 3


class Steps(Trial):
    """Trains one configuration, an epoch in each step."""

    def setup(self, config: dict[str, Any], job: Job, shared: Any) -> None:
        """Begin with the first."""
        super().setup(config, job, shared)
        self._begin()

    def _begin(self) -> None:
        self.left, self.done = epochs(self.keras, self.job, self.number, *self.shared), 0

    def step(self) -> dict[str, Any]:
        """An epoch, and loss and accuracy after it."""
        loss, accuracy = next(self.left)
        self.done += 1
        over = self.done == self.job.epochs
        return {"loss": loss, "accuracy": accuracy, "number": self.number, "done": over}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """In a process that has done a trial: begin the next."""
        super().reset_config(new_config)
        self._begin()
        return True


def main() -> None:
    """Do the job that the command line names."""
    job, place = arguments()
    rows, architectures, received = read(job)
    train, valid = (one_hot(examples, job.classes) for examples in rows)
    ray.init(num_cpus=job.processes, include_dashboard=False, log_to_driver=False, configure_logging=False)
    shared = (architectures, train, valid)
    trainable = tune.with_resources(tune.with_parameters(Steps, job=job, shared=shared), CORES)
    scheduler = ASHAScheduler(metric="loss", mode="min", max_t=job.epochs, grace_period=1, reduction_factor=ETA)
    found = tune.Tuner(
        trainable,
        param_space={"number": tune.grid_search(list(range(len(job.configs))))},
        tune_config=tune.TuneConfig(max_concurrent_trials=job.processes, reuse_actors=True, scheduler=scheduler),
        run_config=tune.RunConfig(
            storage_path=os.path.join(job.folder, "ray-search"),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            verbose=0,
        ),
    ).fit()
    if found.errors:
        raise SystemExit(f"Error: {found.errors[0]}")
    told = [found[position].metrics for position in range(len(found))]
    scores = {m["number"] + 1: (m["loss"], m["accuracy"]) for m in told if m is not None}
    stored = sum(array.nbytes for part in (train, valid) for array in part)
    write_result(Result(scores=scores, moved=received + stored), place)
    ray.shutdown()


if __name__ == "__main__":
    main()
