"""What the epoch loop knows of one configuration: its state, its attempts, and numbers that it still adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

from cerebro_plpy.configs.config import Config
from cerebro_plpy.hopping.schedule import AVERAGING, Visit
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.protocol import VisitResult, Worker
from cerebro_plpy.platform.state_tables import StatePlace
from cerebro_plpy.run.request import Evaluation, FitRequest
from cerebro_plpy.run.timings import Situation, digest
from cerebro_plpy.run.visits import averaged_state, initial_state, later_state, program, tables_of

Part = Mapping[str, Any]
Step = Union[int, Visit]  # what attempts are counted for: a visit that leaves a state, by its number; or evaluates


class Past(NamedTuple):
    """What a configuration did before its run was interrupted; nothing, where the run only begins.

    `visits` are those completed, in order; `attempts` are all that were made, whatever became of them.
    """

    visits: Sequence[tuple[Visit, VisitResult]] = ()
    evaluations: Sequence[Evaluation] = ()
    attempts: Mapping[Step, int] = {}

    def completed(self, segments: Sequence[int]) -> Iterator[Visit]:
        """All that need not be done again; what segments found for an evaluation that was not completed is lost."""
        yield from (visit for visit, _ in self.visits)
        for key, epoch in {(evaluation.mst_key, evaluation.epoch) for evaluation in self.evaluations}:
            yield from (Visit(epoch, key, segment, "evaluate") for segment in segments)


@dataclass
class Standing:
    """One configuration while it trains; `earlier` are the attempts that were made before the run was resumed."""

    config: Config
    program: str
    state: StateSource
    earlier: Mapping[Step, int]
    attempts: dict[Step, int]
    visits: int = 0
    place: StatePlace | None = None
    losses: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    seconds: float = 0.0
    segments: tuple[int, ...] = ()  # of a configuration that averages
    holding: dict[str, set[int]] = field(default_factory=dict)  # tables of which is known whose states they have
    replicas: dict[int, tuple[StateSource, int]] = field(default_factory=dict)  # of this epoch, by segment
    parts: dict[int, list[Part]] = field(default_factory=dict)

    @classmethod
    def after(cls, past: Past, request: FitRequest, config: Config, run_id: int) -> Standing:
        """A configuration with that past."""
        key, state = digest(program(request, config)), initial_state(request, config, run_id)
        segments = request.source.segments if request.schedule == AVERAGING else ()
        standing = cls(config, key, state, past.attempts, dict(past.attempts), segments=segments)
        for visit, result in past.visits:
            standing.trained(run_id, visit, result)
        # A run that ended early may have left more in its tables than its log tells.
        tables = [] if past.attempts else state_tables.state_tables(run_id, config.mst_key, tables_of(request))
        standing.holding = {table: set() for table in tables}
        return standing

    def shares_forms(self, other: Standing) -> bool:
        """Whether the two train the same program in batches of the same size."""
        return (self.program, self.config.fit.batch_size) == (other.program, other.config.fit.batch_size)

    def situation(self, worker: Worker) -> Situation:
        """What a timing of this configuration's visits on that worker is valid for."""
        return Situation(worker.memory.machine, self.program, self.config.fit.batch_size, worker.memory.threads)

    def number(self, visit: Visit) -> int:
        """The number in the log of a visit that leaves a state.

        Visits that average know theirs beforehand. Otherwise, whichever segment it goes to, the next one has the same.
        """
        if not self.segments:
            return self.visits + 1
        place = len(self.segments) if visit.kind == "average" else self.segments.index(visit.segment_id)
        return (visit.epoch - 1) * (len(self.segments) + 1) + place + 1

    def completed(self, epochs: int, segments: int) -> bool:
        """Whether all visits of so many epochs have left their states."""
        return self.visits == epochs * (segments + bool(self.segments))

    def source(self, visit: Visit) -> StateSource:
        """What a visit starts from."""
        if visit.kind != "average":
            return self.state
        return averaged_state([self.replicas[segment] for segment in self.segments])

    def attempt(self, visit: Visit) -> int:
        """The number of a new attempt at this visit."""
        step = self._step(visit)
        self.attempts[step] = self.attempts.get(step, 0) + 1
        return self.attempts[step]

    def attempts_at(self, visit: Visit) -> int:
        """The number of the last attempt at this visit."""
        return self.attempts[self._step(visit)]

    def tried(self, visit: Visit) -> int:
        """How often this visit was tried since the run began or was resumed."""
        return self.attempts_at(visit) - self.earlier.get(self._step(visit), 0)

    def trained(self, run_id: int, visit: Visit, result: VisitResult) -> None:
        """A visit was made; what it left is what the next one starts from, or is to be averaged."""
        place = StatePlace(result.state_table, visit.segment_id)
        others = self.holding.get(place.table, set()) if place.table in self.free(visit) else set()
        self.holding[place.table] = {*others, visit.segment_id}
        left = later_state(run_id, visit.mst_key, self.number(visit), place)
        self.visits += 1
        if visit.kind == "train":
            self.seconds += result.seconds
            self.losses.setdefault(visit.epoch, []).append((result.rows, result.loss))
        if self.segments and visit.kind == "train":
            self.replicas[visit.segment_id] = (left, result.rows)
        else:
            self.state, self.place = left, place

    def free(self, visit: Visit) -> set[str]:
        """Tables that are known to have nothing of that visit's segment, nor of an attempt at it that was lost."""
        if self.attempts.get(self._step(visit), 0) > 1:
            return set()
        return {table for table, segments in self.holding.items() if visit.segment_id not in segments}

    def mean_loss(self, epoch: int) -> float:
        """Mean training loss per row of the visits of an epoch, which is asked for once."""
        losses = self.losses.pop(epoch)
        rows = sum(count for count, _ in losses)
        return sum(count * loss for count, loss in losses) / max(1, rows)

    def _step(self, visit: Visit) -> Step:
        return visit if visit.kind == "evaluate" else self.number(visit)


def added(parts: Iterable[Part]) -> dict[str, dict[str, Any]]:
    """What the segments found, per data set: `sums` added element by element, and `rows`.

    >>> added([{"training": {"rows": 1, "sums": [[1.0, 2.0]]}}, {"training": {"rows": 2, "sums": [[3.0, 4.0]]}}])
    {'sums': {'training': [[4.0, 6.0]]}, 'rows': {'training': 3}}
    """
    sums: dict[str, list[list[float]]] = {}
    rows: dict[str, int] = {}
    for part in parts:
        for name, values in part.items():
            rows[name] = rows.get(name, 0) + values["rows"]
            before = sums.get(name, [[0.0] * len(v) for v in values["sums"]])
            sums[name] = [[a + b for a, b in zip(x, y)] for x, y in zip(before, values["sums"])]
    return {"sums": sums, "rows": rows}
