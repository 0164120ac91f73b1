"""A peer: Ray Tune with its ASHA, which stops trials at rungs; else as in `ray_tune`."""

from __future__ import annotations

from typing import Any

from ray.tune.schedulers import ASHAScheduler

from bench.job import Job, arguments, write_result
from bench.keras_fit import epochs
from bench.ray_tune import Trial, tuned

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
    """Do the job of the command line."""
    job, result_path = arguments()
    scheduler = ASHAScheduler(
        metric="loss", mode="min", max_t=job.epochs, grace_period=1, reduction_factor=ETA
    )
    write_result(tuned(Steps, job, list(range(len(job.configs))), scheduler), result_path)


if __name__ == "__main__":
    main()
