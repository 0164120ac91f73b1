"""Jobs that inspect the network of a state, and the factories of all jobs that do not train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cerebro_trainer.commands.jobs import (
    DatasetKeys,
    EvaluateJob,
    Job,
    NetworkJob,
    RestoreJob,
    StateJob,
)
from cerebro_trainer.commands.prediction_jobs import PredictJob
from cerebro_trainer.commands.row_outputs import OutputsJob
from cerebro_trainer.programs.learner import Learner
from cerebro_trainer.programs.program import Program, require_network
from cerebro_trainer.wire.fields import Header, texts
from cerebro_trainer.wire.frames import Reply


class CutsJob(StateJob, NetworkJob):
    """Lists the layers at which a network can be cut."""

    refusal = "a job that tells cuts takes no buffers"

    def to_reply(self) -> Reply:
        return {"cuts": self.program.describe_cuts()}


class PrefixesJob(StateJob, NetworkJob):
    """Describes the prefixes of a network that end at some layers."""

    refusal = "a job that tells what leads to layers takes no buffers"

    def __init__(self, program: Program, datasets: DatasetKeys, layers: Sequence[str]) -> None:
        super().__init__(program, datasets)
        self._layers = layers

    def to_reply(self) -> Reply:
        return {"fronts": self.program.describe_prefixes(self._layers)}


FACTORIES: Mapping[str, Callable[[Learner, DatasetKeys, Header], Job]] = {
    "evaluate": EvaluateJob.from_header,
    "fronts": lambda learner, datasets, header: PrefixesJob(
        require_network(learner, "fronts"), datasets, texts(header, "layers")
    ),
    "restore": lambda learner, datasets, _: RestoreJob(learner, datasets),
    "cuts": lambda learner, datasets, _: CutsJob(require_network(learner, "cuts"), datasets),
    "outputs": lambda learner, datasets, _: OutputsJob(learner, datasets),
    "predict": PredictJob.from_header,
}
"""Factories of jobs that do not train, by kind."""
