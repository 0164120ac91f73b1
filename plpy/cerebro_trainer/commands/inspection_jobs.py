"""Jobs that inspect the network of a state, and the factories of all jobs that do not train."""

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
    """Lists the layers at which a network can be cut."""

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError("a job that tells cuts takes no buffers")

    def to_reply(self) -> dict[str, object]:
        return {"cuts": self.program.describe_cuts()}


class PrefixesJob(Job):
    """Describes the prefixes of a network that end at some layers."""

    def __init__(self, program: Program, datasets: tuple[str, ...], layers: Sequence[str]) -> None:
        super().__init__(program, datasets)
        self._layers = layers

    @classmethod
    def from_header(
        cls, program: Program, datasets: tuple[str, ...], header: Mapping[str, Any]
    ) -> PrefixesJob:
        """Create the job of a request."""
        return cls(program, datasets, texts(header, "layers"))

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError("a job that tells what leads to layers takes no buffers")

    def to_reply(self) -> dict[str, object]:
        return {"fronts": self.program.describe_prefixes(self._layers)}


FACTORIES: Mapping[str, Callable[[Program, tuple[str, ...], Mapping[str, Any]], Job]] = {
    "evaluate": EvaluateJob.from_header,
    "fronts": PrefixesJob.from_header,
    "restore": lambda program, datasets, _: RestoreJob(program, datasets),
    "cuts": lambda program, datasets, _: CutsJob(program, datasets),
    "outputs": lambda program, datasets, _: OutputsJob(program, datasets),
    "predict": lambda program, datasets, _: PredictJob(program, datasets),
}
"""Factories of jobs that do not train, by kind."""
