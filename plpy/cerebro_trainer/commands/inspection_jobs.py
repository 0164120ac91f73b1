"""Jobs that inspect the network of a state, and the factories of all jobs that do not train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cerebro_trainer.commands.jobs import (
    DatasetKeys,
    EvaluateJob,
    Job,
    PredictJob,
    RestoreJob,
    StateJob,
)
from cerebro_trainer.commands.row_outputs import OutputsJob
from cerebro_trainer.programs.program import Program
from cerebro_trainer.wire.fields import Header, texts
from cerebro_trainer.wire.frames import Reply


class CutsJob(StateJob):
    """Lists the layers at which a network can be cut."""

    refusal = "a job that tells cuts takes no buffers"

    def to_reply(self) -> Reply:
        return {"cuts": self.program.describe_cuts()}


class PrefixesJob(StateJob):
    """Describes the prefixes of a network that end at some layers."""

    refusal = "a job that tells what leads to layers takes no buffers"

    def __init__(self, program: Program, datasets: DatasetKeys, layers: Sequence[str]) -> None:
        super().__init__(program, datasets)
        self._layers = layers

    def to_reply(self) -> Reply:
        return {"fronts": self.program.describe_prefixes(self._layers)}


FACTORIES: Mapping[str, Callable[[Program, DatasetKeys, Header], Job]] = {
    "evaluate": EvaluateJob.from_header,
    "fronts": lambda program, datasets, header: PrefixesJob(
        program, datasets, texts(header, "layers")
    ),
    "restore": lambda program, datasets, _: RestoreJob(program, datasets),
    "cuts": lambda program, datasets, _: CutsJob(program, datasets),
    "outputs": lambda program, datasets, _: OutputsJob(program, datasets),
    "predict": lambda program, datasets, _: PredictJob(program, datasets),
}
"""Factories of jobs that do not train, by kind."""
