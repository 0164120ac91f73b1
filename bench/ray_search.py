"""A peer: Ray Tune with its ASHA, which stops trials at rungs; otherwise like `ray_tune`."""

from __future__ import annotations

from typing import Any

from ray.tune.schedulers import ASHAScheduler

from bench.job import Job, parse_arguments, write_result
from bench.keras_fit import fit_epochs
from bench.ray_tune import Trial, run_trials

ETA = 3


class Steps(Trial):
    """A trial that trains an epoch of one configuration in each step."""

    def setup(self, config: dict[str, Any], job: Job, shared: Any) -> None:
        """Start the first configuration."""
        super().setup(config, job, shared)
        self._begin()

    def _begin(self) -> None:
        self.remaining_epochs = fit_epochs(self.keras, self.job, self.number, *self.shared)
        self.epochs_done = 0

    def step(self) -> dict[str, Any]:
        """Train an epoch; return the loss and accuracy."""
        loss, accuracy = next(self.remaining_epochs)
        self.epochs_done += 1
        is_done = self.epochs_done == self.job.epochs
        return {"loss": loss, "accuracy": accuracy, "number": self.number, "done": is_done}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the next configuration in the process of an ended trial."""
        super().reset_config(new_config)
        self._begin()
        return True


def main() -> None:
    """Do the job of the command line."""
    job, result_path = parse_arguments()
    scheduler = ASHAScheduler(
        metric="loss", mode="min", max_t=job.epochs, grace_period=1, reduction_factor=ETA
    )
    write_result(run_trials(Steps, job, list(range(len(job.configs))), scheduler), result_path)


if __name__ == "__main__":
    main()
