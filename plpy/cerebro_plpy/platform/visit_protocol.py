"""The records that pass between a run and the visits of its workers, see `visits.Visits`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Union

from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.platform.resource_usage import Account, Cost
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.trainer_cache_state import TrainerCacheState
from cerebro_plpy.records import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cerebro_plpy.database.sessions.async_dispatcher import Session
    from cerebro_plpy.platform.job import Dataset, Job, StateSource


@dataclass(eq=False)
class Worker:
    """A session with its trainer, the content of that trainer, and the cost of both.

    Workers with the same number take turns: each of them has another framework.
    """

    number: int
    session: Session
    framework: str = "tensorflow"
    segment_id: int | None = None  # the only segment it serves, see `Platform.assign_segments`
    memory: TrainerCacheState = field(default_factory=TrainerCacheState)
    account: Account = field(default_factory=Account)

    @property
    def is_replaceable(self) -> bool:
        """True if other workers can do its work."""
        return self.segment_id is None

    @property
    def role(self) -> str:
        """The role of sessions that can serve it.

        Their trainer has its framework, and belongs to its segment.
        """
        return session_role(self.framework, self.segment_id)


def session_role(framework: str, segment_id: int | None) -> str:
    """Return the role of a worker's session, see `Worker.role`."""
    return framework if segment_id is None else f"{framework} {segment_id}"


@dataclass(frozen=True)
class TrainVisit:
    """A training visit and all that its statements need; a visit of kind `average` needs no data.

    The table of the new state must be emptied if it may contain a state of the segment.
    """

    run_id: int
    epoch: int
    mst_key: int
    visit_no: int
    attempt: int
    dataset: Dataset
    state: StateSource
    job: Job
    state_table: str  # for the new state; in a batch, for that of the last visit
    replaced_table: str | None = None  # replaced by `state_table`, which is then to be created
    must_empty: bool = True  # False: `state_table` is known to have no state of the segment
    is_fresh: bool = False  # `state_table` is known to be empty

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The partitions that the trainer must have."""
        if self.job.kind != "train":
            return ()
        return (self.dataset,)

    @property
    def segments(self) -> tuple[int, ...]:
        """The segment that it visits."""
        return (self.dataset.segment_id,)


@dataclass(frozen=True)
class EvaluateVisit:
    """An evaluation of a configuration over partitions of segments."""

    run_id: int
    epoch: int
    mst_key: int
    attempt: int
    partitions: tuple[tuple[str, Dataset], ...]  # data set (training, validation) and partition
    state: StateSource
    job: Job
    metrics: tuple[str, ...] = ()  # names of final metrics to compute, within a batch
    is_candidate: bool = False  # for the best state: the trainer keeps it until the batch is stored

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The partitions that the trainer must have."""
        return tuple(dataset for _, dataset in self.partitions)

    @property
    def segments(self) -> tuple[int, ...]:
        """The segments that it visits."""
        return tuple(dict.fromkeys(dataset.segment_id for dataset in self.datasets))

    def first_segment(self) -> EvaluateVisit:
        """Return the visit to its first segment only."""
        segment = self.segments[0]
        partitions = tuple(
            (name, dataset) for name, dataset in self.partitions if dataset.segment_id == segment
        )
        return replace(self, partitions=partitions)


@dataclass(frozen=True)
class BestState:
    """The state after an epoch, to be retained in a separate table as the best so far.

    It is stored in another table already, unless the batch that created it is stored with it.
    """

    run_id: int
    mst_key: int
    epoch: int
    state: StateSource
    segment_id: int | None  # segment that has created it
    table: str
    replaced_table: str | None  # table of the best state before

    @property
    def stored(self) -> StoredState:
        """The location of the copy; frozen weights that were stored before stay in their table."""
        base = self.state.stored and self.state.stored.base
        return StoredState(self.table, self.segment_id, base)


BatchVisit = Union[TrainVisit, EvaluateVisit]


class BatchResult(NamedTuple):
    """Visits that a trainer has done, and their results, before they are stored.

    All results contain `seconds`. Results of training visits contain `timings` of the execution
    modes that were measured; `fallback`, the reason if no mode of the program worked; `shards`,
    which were swapped in memory; and `warnings` of the framework. Results of evaluations contain
    `metrics`, by data set with its loss.
    """

    visits: Sequence[BatchVisit]
    results: Sequence[JsonObject]
    best: BestState | None = None  # if one of the visits has created it

    @property
    def training(self) -> list[tuple[TrainVisit, JsonObject]]:
        """The visits that create states, with their results."""
        pairs = zip(self.visits, self.results)
        return [(visit, result) for visit, result in pairs if isinstance(visit, TrainVisit)]

    @property
    def evaluations(self) -> list[tuple[EvaluateVisit, JsonObject]]:
        """The visits that evaluate states, with their results."""
        pairs = zip(self.visits, self.results)
        return [(visit, result) for visit, result in pairs if isinstance(visit, EvaluateVisit)]

    @property
    def segment_count(self) -> int:
        """The number of segments visited."""
        return sum(len(visit.segments) for visit in self.visits)


@dataclass(frozen=True)
class VisitResult:
    """The result of a training visit."""

    rows: int
    loss: float | None  # None if rows were only collected for a later visit
    seconds: float
    state_table: str | None  # None if other visits of its batch followed
    base_table: str | None = None  # table of the frozen weights, if they are shared


class FusedResult(NamedTuple):
    """The result of a configuration that was trained together with others."""

    batch: BatchResult
    results: Sequence[VisitResult]
    error: str | None  # the reason if the configuration cannot be trained
    cost: Cost  # its share of the cost of the job
