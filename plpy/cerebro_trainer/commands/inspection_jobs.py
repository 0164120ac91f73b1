"""Jobs that see no rows, but tell of the network of a state; and what makes jobs that know nothing
of how to train.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cerebro_trainer.commands.jobs import EvaluateJob, Job, PredictJob, RestoreJob
from cerebro_trainer.commands.row_outputs import OutputsJob
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import RequestError
from cerebro_trainer.programs.program import Program
from cerebro_trainer.wire.fields import texts


class CutsJob(Job):
    """Where the network of the state can be cut, and that is all."""

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError("a job that tells cuts takes no buffers")

    def result(self) -> dict[str, object]:
        return {"cuts": self.program.describe_cuts()}


class FrontsJob(Job):
    """What leads to some layers at which the network of the state can be cut, and that is all."""

    def __init__(self, program: Program, datasets: tuple[str, ...], layers: Sequence[str]) -> None:
        super().__init__(program, datasets)
        self._layers = layers

    @classmethod
    def asked(
        cls, program: Program, datasets: tuple[str, ...], header: Mapping[str, Any]
    ) -> FrontsJob:
        """As a request says it."""
        return cls(program, datasets, texts(header, "layers"))

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError("a job that tells what leads to layers takes no buffers")

    def result(self) -> dict[str, object]:
        return {"fronts": self.program.describe_prefixes(self._layers)}


OTHERS: Mapping[str, Callable[[Program, tuple[str, ...], Mapping[str, Any]], Job]] = {
    "evaluate": EvaluateJob.asked,
    "fronts": FrontsJob.asked,
    "restore": lambda program, datasets, _: RestoreJob(program, datasets),
    "cuts": lambda program, datasets, _: CutsJob(program, datasets),
    "outputs": lambda program, datasets, _: OutputsJob(program, datasets),
    "predict": lambda program, datasets, _: PredictJob(program, datasets),
}
"""What makes jobs that know nothing of how to train, by their kinds."""
