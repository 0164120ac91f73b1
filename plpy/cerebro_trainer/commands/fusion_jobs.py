"""A job that trains several states of one program: side by side, where that is found to be faster
than one by one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cerebro_trainer.commands.jobs import Job, TrainJob
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.execution_modes import ModeSelector
from cerebro_trainer.programs.fusion import Fusion, Member
from cerebro_trainer.programs.program import Program

Orders = Sequence[npt.NDArray[np.int32]]


@dataclass
class Trainee:
    """A state of the job: its name when that is done, its visits, and, once it was loaded, what the
    program held.

    `error` is why it cannot be trained, where it cannot; `base` is the digest of the frozen weights
    that it has left.
    """

    key: str
    spec: ProgramSpec
    visits: Sequence[TrainJob]
    member: Member | None = None
    error: ConfigError | None = None
    base: str | None = None

    @property
    def epoch(self) -> int:
        """That of its last visit, counted from the first call that trained the state."""
        return self.visits[-1].epoch

    def result(self) -> dict[str, object]:
        """What its visits came to, or why they came to nothing."""
        if self.error is not None:
            return {"visits": [], **self.error.to_header()}
        return {
            "visits": [{**visit.result(), "base": self.base} for visit in self.visits],
            "error": None,
        }


class FusionJob(Job):
    """Visits of several states to the same partitions, one partition after another; all are kept in
    memory.
    """

    def __init__(self, program: Program, datasets: Sequence[str], forms: ModeSelector) -> None:
        super().__init__(program, tuple(dict.fromkeys(datasets)))
        self._partitions, self._forms, self._visit = datasets, forms, 0
        self._fusion: Fusion | None = None
        self.trainees: list[Trainee] = []

    def check(self, program: Program) -> None:
        """ConfigError where a state that is to join is of another program."""
        if program is not self.program:
            raise ConfigError("states of one job are of one program", sqlstate="0A000")

    def admit(self, trainee: Trainee) -> None:
        """Another state is to be loaded, which makes the same visits in the same way."""
        if len(trainee.visits) != len(self._partitions) or not trainee.visits:
            raise RequestError(
                f"states of this job make {len(self._partitions)} visits, {trainee.key!r} does not"
            )
        if self.trainees and not trainee.visits[0].goes_as(self.trainees[0].visits[0]):
            raise RequestError(
                f'states of one job share "fit" and "forms", but {trainee.key!r} has others'
            )
        self.trainees.append(trainee)

    @property
    def form_asked(self) -> str | None:
        """The form that its states are to be trained in, where one is named."""
        return self.trainees[0].visits[0].form_asked

    def loaded(self) -> None:
        """The program has the state that was admitted last, and its numbers."""
        self.trainees[-1].member = self.program.read_member()

    def rounds(self) -> Iterator[tuple[int, str]]:
        for number, dataset in enumerate(self._partitions):
            self._visit = number
            for pass_no in range(self.trainees[0].visits[number].passes):
                yield pass_no, dataset

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        visits = [trainee.visits[self._visit] for trainee in self.trainees]
        orders = [visit.order(buffer, pass_no) for visit in visits]
        if not len(orders[0]):
            return
        weighted = visits[0].weighted(buffer)
        form = visits[0].form_for(self._forms, weighted, orders[0], len(visits))
        began = time.perf_counter()
        losses = self._trained(weighted, orders, visits[0].batch_size, form)
        share, now = (time.perf_counter() - began) / len(visits), time.time()
        for trainee, loss in zip(self.trainees, losses, strict=True):
            visit = trainee.visits[self._visit]
            visit.ended_at = now
            visit.seconds += share
            try:
                visit.passed(buffer, len(orders[0]), loss, form)
            except ConfigError as error:
                trainee.error = trainee.error or error

    def _trained(self, buffer: Buffer, orders: Orders, batch_size: int, form: str) -> list[float]:
        """Train all states on these rows; the sum of the losses of each."""
        if form in self.program.lanes:
            if self._fusion is None:
                self._fusion = self.program.fuse([member for _, member in self._members()], form)
            return self._fusion.train(buffer, orders, batch_size)
        losses = []
        for (trainee, member), order in zip(self._members(), orders, strict=True):
            if trainee.error is not None:
                losses.append(math.nan)
                continue
            self._hold(trainee, member)
            losses.append(self.program.train(buffer, order, batch_size, form))
            trainee.member = self.program.read_member()
        return losses

    def left(self) -> Iterator[Trainee]:
        """Those that could be trained, one after another; the program has what is left of each in
        its turn.
        """
        for place, (trainee, member) in enumerate(self._members()):
            if trainee.error is None:
                values = member.values if self._fusion is None else self._fusion.read_state(place)
                self._hold(trainee, member._replace(values=values))
                yield trainee

    def _hold(self, trainee: Trainee, member: Member) -> None:
        self.program.set_hyperparameters(trainee.spec)
        self.program.write(member.values)

    def _members(self) -> Iterator[tuple[Trainee, Member]]:
        for trainee in self.trainees:
            assert trainee.member is not None
            yield trainee, trainee.member

    def result(self) -> dict[str, object]:
        return {"states": [trainee.result() for trainee in self.trainees]}
