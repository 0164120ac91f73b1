"""What the epoch loop gives its workers to do, and what it needs of the place that it runs in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, Union

from cerebro_plpy.errors import ConnectionFailure, OutOfMemory, TrainerFailure
from cerebro_plpy.platform.job import Sums
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    BatchVisit,
    BestState,
    TrainVisit,
    Worker,
)
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.log.run_log import DecisionRow
from cerebro_plpy.run.request.run_request import Evaluation
from cerebro_plpy.run.workers.admission import RunSlots
from cerebro_plpy.run.workers.sampler import Suggest, suggest_nothing
from cerebro_plpy.scheduling.quota.cost_limits import Usage
from cerebro_plpy.scheduling.schedule.schedule import Visit, VisitBatch

# Errors after which the same task may succeed with a new trainer or session.
PASSING = (TrainerFailure, OutOfMemory, ConnectionFailure)


class Beside(Protocol):
    """What the caller's session does beside a run, while the workers have nothing to tell it."""

    def trained(self, run_id: int, mst_key: int) -> None:
        """Hear of a configuration that is trained no further, and of which a state is stored; it
        may still fail.
        """

    def finished(self, mst_key: int) -> None:
        """Hear that such a configuration has nothing left to do."""

    def piece(self) -> bool:
        """Do a little, some 20 ms; False where there is nothing to do. It may raise."""
        ...


class Nothing:
    """See `Beside`: it only waits."""

    def trained(self, run_id: int, mst_key: int) -> None:
        """Whatever is trained."""

    def finished(self, mst_key: int) -> None:
        """Whatever is finished."""

    def piece(self) -> bool:
        """There is none."""
        return False


Decided = Callable[[Sequence[DecisionRow], Iterable[Evaluation]], None]


def unheard(rows: Sequence[DecisionRow], evaluations: Iterable[Evaluation]) -> None:
    """Nobody has to be told."""


@dataclass(frozen=True)
class Surroundings:
    """What a run needs of the place it runs in.

    `check` is called often and may raise; `epoch` hears of each epoch that all configurations have
    completed (its number, its seconds, all evaluations so far, mean losses while training by
    mst_key), `failed` of each configuration that fails, `note` what else the caller should know;
    `reopen` gives a worker a new session after it lost its own, or says that it cannot. `beside` is
    what is done while workers are waited for; `decided` hears of what a search decides, and of all
    evaluations by then; which configurations to try next it is told by `suggest`, and what it has
    cost by `spent`. `count` may count that for the quota of the role.
    """

    check: Callable[[], None]
    epoch: Callable[[int, float, Sequence[Evaluation], Mapping[int, float]], None]
    failed: Callable[[int, str], None]
    note: Callable[[str], None]
    reopen: Callable[[Worker], bool]
    beside: Beside = Nothing()
    decided: Decided = unheard
    suggest: Suggest = suggest_nothing
    spent: Callable[[], Usage] = Usage
    count: Callable[[], object] = bool
    places: RunSlots | None = None


class OfTour:
    """A task that visits of one configuration are made in, or followed by."""

    tour: VisitBatch

    @property
    def mst_key(self) -> int:
        return self.tour[0].mst_key

    @property
    def epoch(self) -> int:
        return self.tour[0].epoch


@dataclass(frozen=True)
class Results(OfTour):
    """The task of computing final metrics after an epoch, from sums over segments; `tour` was the
    last to add some.
    """

    tour: VisitBatch
    sums: Sums
    attempt: int = 1


@dataclass(frozen=True)
class Keeping:
    """The task of keeping a state as that of the best epoch; meanwhile nothing else is done with
    its configuration.
    """

    best: BestState
    attempt: int = 1

    @property
    def mst_key(self) -> int:
        return self.best.mst_key


Step = Union[int, Visit]
"""A visit that leaves a state, by its number; or one that evaluates."""
Further = Union[Results, Keeping]
"""What follows an evaluation; any worker can do it."""


@dataclass(frozen=True)
class Visiting(OfTour):
    """The task of making visits of one configuration, since that moment of the run.

    Where the tour before is still to be stored, it is first their beginning, and then the rest.
    """

    tour: VisitBatch
    since: float
    visits: Sequence[BatchVisit] = ()

    @property
    def trains(self) -> bool:
        return self.tour[0].kind != "evaluate"

    @property
    def step(self) -> Step:
        """What attempts at it are counted for."""
        return next(
            (visit.visit_no for visit in self.visits if isinstance(visit, TrainVisit)), self.tour[0]
        )


@dataclass(frozen=True)
class Storing(OfTour):
    """The task of storing, since that moment, what a worker's visits have left, after `seconds` of
    work for them.

    Its trainer may do the visits `beside` it; but not where that state is `evaluated` next, which
    it has then.
    """

    tour: VisitBatch
    trained: BatchResult
    worker: Worker
    seconds: float
    evaluated: bool = False
    since: float = 0.0
    beside: Visiting | None = None

    def worked(self, now: float) -> float:
        """How long the worker has had nothing else to do, if it has just ended."""
        return self.seconds if self.beside else self.seconds + now - self.since


@dataclass(frozen=True)
class Fusing:
    """The task of making visits of several configurations in one job, and storing what they
    leave.
    """

    tasks: Sequence[Visiting]


Task = Union[Visiting, Storing, Further]
