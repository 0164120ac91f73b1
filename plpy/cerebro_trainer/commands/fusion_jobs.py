"""A job that trains several states of one program, at once if that is faster than one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cerebro_trainer.commands.jobs import NetworkJob, TrainJob
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs.execution_modes import ModeSelector
from cerebro_trainer.programs.fusion import Fusion, Member, Orders
from cerebro_trainer.programs.learner import Learner
from cerebro_trainer.programs.program import Program
from cerebro_trainer.wire.frames import Reply


@dataclass
class FusedState:
    """A state of the job."""

    key: str  # its name when it is trained
    spec: ProgramSpec
    visits: Sequence[TrainJob]
    member: Member | None = None  # its values in the program, once it is loaded
    error: ConfigError | None = None  # why it cannot be trained
    base_digest: str | None = None  # digest of the frozen weights after training

    @property
    def epoch(self) -> int:
        """The epoch of the last visit, counted from the first call that trained the state."""
        return self.visits[-1].epoch

    def to_reply(self) -> Reply:
        """Return the results of the visits, or the error."""
        if self.error is not None:
            return {"visits": [], **self.error.to_header()}
        visits = [{**visit.to_reply(), "base": self.base_digest} for visit in self.visits]
        return {"visits": visits, "error": None}


class FusionJob(NetworkJob):
    """Trains several states on the same partitions, one partition after another.

    All partitions are cached.
    """

    def __init__(self, program: Program, datasets: Sequence[str], selector: ModeSelector) -> None:
        super().__init__(program, tuple(dict.fromkeys(datasets)))
        self.states: list[FusedState] = []
        self._partitions = datasets
        self._selector = selector
        self._visit_no = 0
        self._fusion: Fusion | None = None

    def check_program(self, program: Learner) -> None:
        """Raise ConfigError if a state to add belongs to another program."""
        if program is not self.program:
            raise ConfigError("states of one job are of one program", sqlstate="0A000")

    def add_state(self, state: FusedState) -> None:
        """Add a state that will be loaded; it makes the same visits with the same settings."""
        if len(state.visits) != len(self._partitions) or not state.visits:
            raise RequestError(
                f"states of this job make {count_nouns(len(self._partitions), 'visit')}, "
                f"{state.key!r} does not"
            )
        if self.states and not state.visits[0].has_same_settings(self.states[0].visits[0]):
            raise RequestError(
                f'states of one job share "fit" and "forms", but {state.key!r} has others'
            )
        self.states.append(state)

    @property
    def forced_mode(self) -> str | None:
        """The execution mode that the request names."""
        return self.states[0].visits[0].forced_mode

    def save_loaded_state(self) -> None:
        """Save the values of the last added state, which the program contains now."""
        self.states[-1].member = self.program.read_member()

    def list_passes(self) -> Iterator[tuple[int, str]]:
        for visit_no, dataset in enumerate(self._partitions):
            self._visit_no = visit_no
            for pass_no in range(self.states[0].visits[visit_no].passes):
                yield pass_no, dataset

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        visits = [state.visits[self._visit_no] for state in self.states]
        orders = [visit.order_rows(buffer, pass_no) for visit in visits]
        rows = len(orders[0])
        if not rows:
            return
        first = visits[0]
        weighted = first.add_weights(buffer)
        mode = first.choose_mode(self._selector, weighted, orders[0], len(visits))
        start = time.perf_counter()
        losses = self._train(weighted, orders, first.batch_size, mode)
        seconds_per_state = (time.perf_counter() - start) / len(visits)
        now = time.time()
        for state, visit, loss in zip(self.states, visits, losses, strict=True):
            visit.ended_at = now
            visit.seconds += seconds_per_state
            try:
                visit.record_pass(buffer, rows, loss, mode)
            except ConfigError as error:
                state.error = state.error or error

    def _train(self, buffer: Buffer, orders: Orders, batch_size: int, mode: str) -> list[float]:
        """Train all states on rows of a buffer; return the sum of losses of each state."""
        if mode in self.program.lanes:
            if self._fusion is None:
                members = [member for _, member in self._list_members()]
                self._fusion = self.program.fuse(members, mode)
            return self._fusion.train(buffer, orders, batch_size)
        losses = []
        for (state, member), order in zip(self._list_members(), orders, strict=True):
            if state.error is not None:
                losses.append(math.nan)
                continue
            self._load(state, member)
            losses.append(self.program.train(buffer, order, batch_size, mode))
            state.member = self.program.read_member()
        return losses

    def load_results(self) -> Iterator[FusedState]:
        """Yield each trained state while the program contains it."""
        for lane, (state, member) in enumerate(self._list_members()):
            if state.error is not None:
                continue
            if self._fusion is not None:
                member = member._replace(values=self._fusion.read_state(lane))
            self._load(state, member)
            yield state

    def _load(self, state: FusedState, member: Member) -> None:
        self.program.set_hyperparameters(state.spec)
        self.program.write(member.values)

    def _list_members(self) -> Iterator[tuple[FusedState, Member]]:
        for state in self.states:
            assert state.member is not None
            yield state, state.member

    def to_reply(self) -> Reply:
        return {"states": [state.to_reply() for state in self.states]}
