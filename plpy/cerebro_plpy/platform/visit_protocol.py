"""The interface between a run and the database, with the laws that every platform obeys.

It has two parts. `platform_protocol.Platform` describes the server in terms of the database; every
part of a call may use it, and it has no state. `TrainingPlatform` adds packed tables and trainers,
and creates `Visits`: the same platform for workers whose trainers have been chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Union, runtime_checkable

from cerebro_plpy.database.platform_protocol import Platform, Reader
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.platform.resource_usage import Account, Cost
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.trainer_cache_state import TrainerCacheState
from cerebro_plpy.records import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cerebro_plpy.database.sessions.async_dispatcher import Session, Statement, Steps
    from cerebro_plpy.platform.job import Dataset, Filling, Job, RawRows, StateSource, Sums
    from cerebro_plpy.trainer_client.settings import Settings, TrainerOptions


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


@dataclass(frozen=True)
class JoinedState:
    """A state to be created from those of several configurations, in a separate table."""

    run_id: int
    mst_key: int  # configuration that logs the table
    state: StateSource
    table: str
    segment_id: int


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
    loss: float
    seconds: float
    state_table: str | None  # None if other visits of its batch followed
    base_table: str | None = None  # table of the frozen weights, if they are shared


class FusedResult(NamedTuple):
    """The result of a configuration that was trained together with others."""

    batch: BatchResult
    results: Sequence[VisitResult]
    error: str | None  # the reason if the configuration cannot be trained
    cost: Cost  # its share of the cost of the job


class Visits(Protocol):
    """The work of a call's workers. Steps generate statements for the session of one worker.

    Laws:
    1. `store` commits the last state of a batch, its best state if that is to be retained, and all
       log rows and metrics of the batch, or nothing.
    2. The log row of the first visit is committed as running before training starts. No log row
       is completed before the state in the last visit's `state_table` is committed.
    3. A visit starts from exactly the state that the visit before it created. A batch starts from
       a committed state, or from a state in its worker's trainer. It is committed after the batch
       that created that state, or not at all.
    4. An evaluation changes no state.
    5. All rows of a segment reach the trainer once, in the order of buffer_id.
    6. Steps may be abandoned at any statement. Uncommitted work then leaves no trace but a log row
       that says running.
    7. Between `begin` and `finish` of a batch its worker only stores the batch before it, if that
       is not stored yet. That batch is stored as it was when the other one began.
    """

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer of a worker, unless it has started."""

    def report_cost(self, worker: Worker) -> Steps[None]:
        """Let a worker report its cost since its last job."""

    def stop_trainer(self, worker: Worker) -> Steps[None]:
        """End the trainer of a worker, if it has started: the next visit starts another."""

    def train(self, worker: Worker, visits: Sequence[BatchVisit]) -> Steps[BatchResult]:
        """Do visits of one configuration, of which the first trains, or averages states.

        Only the first visits are done if not all segments are cached in the trainer's memory, or
        if an evaluation finds a loss that is not a number.
        """

    def train_fused(
        self, worker: Worker, batches: Sequence[Sequence[TrainVisit]]
    ) -> Steps[list[FusedResult]]:
        """Train several configurations of one program on the same segments in one job; store them.

        No visit is done if not all segments are cached in the trainer's memory, or if the states
        are too large.
        """

    def can_overlap(self, worker: Worker, batch: BatchResult, datasets: Sequence[Dataset]) -> bool:
        """Return True if visits to these partitions can begin before the batch is stored."""

    def begin(self, worker: Worker, visits: Sequence[BatchVisit]) -> Steps[None]:
        """Begin to train visits; `can_overlap` must have returned True."""

    def finish(self, worker: Worker, visits: Sequence[BatchVisit]) -> Steps[BatchResult]:
        """Finish visits that `begin` began."""

    def store(self, worker: Worker, batch: BatchResult) -> Steps[list[VisitResult]]:
        """Store the states of visits and log the visits as completed; return training results."""

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[int, JsonObject]]:
        """Evaluate a visit; only its first segment if not all are cached in the trainer's memory.

        Returns:
            Rows and sums by segment and data set (training, validation).
        """

    def probe(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[JsonObject]:
        """Time a configuration on the first buffer of a partition; log and store nothing."""

    def check_state(self, worker: Worker, state: StateSource, job: Job) -> Steps[bool]:
        """Return True if the whole state fits the program of a job.

        Raises:
            ConfigFailure: not even its weights fit.
        """

    def inspect(self, worker: Worker, state: StateSource, job: Job) -> Steps[JsonObject]:
        """Return the result of a job that inspects the network of a state, without rows.

        Nothing is logged or stored.
        """

    def store_features(
        self, worker: Worker, state: StateSource, job: Job, fillings: Sequence[Filling]
    ) -> Steps[None]:
        """Fill tables with the outputs of layers for partitions; fill all of them or none."""

    def join(self, worker: Worker, joined: JoinedState, job: Job) -> Steps[StoredState]:
        """Create a state from the weights of several states, and log its table, or do neither."""

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: Job
    ) -> Steps[JsonObject]:
        """Evaluate outside a run, without a log; return rows and sums by key of the data set."""

    def read_outputs(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[Sequence[bytes]]:
        """Return the target and the outputs of each row of a partition, as float32.

        This is done outside a run.
        """

    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: JsonObject,
    ) -> Steps[str | None]:
        """Open a prediction job for rows.

        Args:
            request: describes the blocks of rows.

        Returns:
            The statement that declares the cursor over the blocks; None if the worker has no rows.
        """

    def end_prediction(self, worker: Worker) -> Statement:
        """Return the statement that ends a prediction job whose blocks have been fetched."""

    def compute_metrics(self, worker: Worker, sums: Sums) -> Steps[JsonObject]:
        """Return final metrics from sums over segments: loss and metrics by data set."""

    def retain(self, worker: Worker, best: BestState) -> Steps[StoredState]:
        """Copy a state and log it as the best, or do neither; return the location of the copy."""


@runtime_checkable
class TrainingPlatform(Platform, Protocol):
    """A platform that trains on packed tables, with the laws of `Platform` and `Visits`."""

    def visits(
        self,
        trainers: Sequence[TrainerOptions],
        settings: Settings,
        workers: int,
        note: Callable[[str], None],
    ) -> Visits:
        """Return the visits of workers.

        Args:
            trainers: options of each worker's trainer, by its number.
            workers: number of workers that share the memory that the settings allow.
            note: sends a message to the caller.
        """

    def scoring_trainers(self, trainers: int, is_local: bool) -> int:
        """Return the number of trainers that divide the cores of a machine when they score.

        Args:
            trainers: the actual number.
            is_local: the trainer is that of the caller's own session.
        """

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """Return the rows of a table, with the segments where they are predicted.

        Args:
            table: oid of the table.
        """
