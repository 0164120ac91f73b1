"""What a run needs of the database it lives in, and the laws that every platform keeps.

An adapter has two sides. `database.platform.Platform` is what the server is, in words of the
database: it is known wherever a call goes, and holds nothing. `TrainingPlatform` adds what takes
packed tables and trainers, and makes `Visits`: the same platform for workers whose trainers are
chosen, which know how these are started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union, runtime_checkable

from cerebro_plpy.database.platform_protocol import Platform, Reader
from cerebro_plpy.platform.resource_usage import Account, Cost
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.trainer_cache_state import TrainerMemory
from cerebro_plpy.records import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cerebro_plpy.database.sessions.async_dispatcher import Session, Statement, Steps
    from cerebro_plpy.platform.job import Dataset, Filling, Job, RawRows, StateSource, Sums
    from cerebro_plpy.trainer_client.settings import Settings, TrainerOptions


@dataclass(eq=False)
class Worker:
    """A session with its trainer, what that trainer is known to hold, and what both have cost.

    Workers of one number take turns: they are there for one place, with a framework each.
    `segment_id` is the segment that it alone can serve, where trainers belong to segments (see
    `Platform.posts`).
    """

    number: int
    session: Session
    framework: str = "tensorflow"
    segment_id: int | None = None
    memory: TrainerMemory = field(default_factory=TrainerMemory)
    account: Account = field(default_factory=Account)

    @property
    def replaceable(self) -> bool:
        """Whether other workers can do its work."""
        return self.segment_id is None

    @property
    def role(self) -> str:
        """Which sessions can serve it: those whose trainer has this framework, and is that of this
        segment.
        """
        return session_role(self.framework, self.segment_id)


def session_role(framework: str, segment_id: int | None) -> str:
    """The role of a worker's session, see `Worker.role`."""
    return framework if segment_id is None else f"{framework} {segment_id}"


@dataclass(frozen=True)
class TrainVisit:
    """One training visit, with all that its statements need; or one of kind `average`, which needs
    no data.

    `state_table` takes the new state, or that of the last visit of a tour; it is still to be made
    where it replaces `replaced_table`. It is to be `emptied` before, unless it is known to have
    nothing of the segment; where nothing tells the states of segments apart, unless it is known to
    be `fresh`, with nothing at all.
    """

    run_id: int
    epoch: int
    mst_key: int
    visit_no: int
    attempt: int
    dataset: Dataset
    state: StateSource
    job: Job
    state_table: str
    replaced_table: str | None = None
    emptied: bool = True
    fresh: bool = False

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The partitions that the trainer must have."""
        return (self.dataset,) if self.job.kind == "train" else ()


@dataclass(frozen=True)
class EvaluateVisit:
    """One evaluation of a configuration over partitions of segments, each named: training or
    validation.

    Within a tour, which it may be part of, it computes final `metrics`, of these names; where its
    state is a `candidate` for the best, the trainer has it until the tour is stored.
    """

    run_id: int
    epoch: int
    mst_key: int
    attempt: int
    named: tuple[tuple[str, Dataset], ...]
    state: StateSource
    job: Job
    metrics: tuple[str, ...] = ()
    candidate: bool = False

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The partitions that the trainer must have."""
        return tuple(dataset for _, dataset in self.named)

    @property
    def segments(self) -> tuple[int, ...]:
        """The segments that it visits."""
        return tuple(dict.fromkeys(dataset.segment_id for dataset in self.datasets))

    def first(self) -> EvaluateVisit:
        """Its first segment alone."""
        named = tuple(each for each in self.named if each[1].segment_id == self.segments[0])
        return replace(self, named=named)


@dataclass(frozen=True)
class BestState:
    """A state that is to be kept, as that after an epoch, in a table of its own; it is better than
    a replaced one.

    It was made on a segment, and is stored elsewhere already, unless a tour in which it was made is
    stored with it.
    """

    run_id: int
    mst_key: int
    epoch: int
    state: StateSource
    segment_id: int | None
    table: str
    replaced_table: str | None

    @property
    def kept(self) -> StoredState:
        """Where it lies then; the frozen weights of one that was stored before stay where they
        are.
        """
        return StoredState(
            self.table, self.segment_id, self.state.stored.base if self.state.stored else None
        )


@dataclass(frozen=True)
class JoinedState:
    """A state that is to be made of those of several configurations, in a table of its own that one
    of them logs.
    """

    run_id: int
    mst_key: int
    state: StateSource
    table: str
    segment_id: int


TourVisit = Union[TrainVisit, EvaluateVisit]


class Trained(NamedTuple):
    """Visits of a tour that a trainer has made, and what it said of each, before they are stored,
    with the `best` state if one of them has left it.

    Of the `results` an epoch loop needs `seconds`; of those that train `timings` of forms that were
    measured, `fallback`, which says why no form of the program worked, `shards` that took turns in
    memory, and `warnings` of the framework; of those that evaluate `metrics`, by data set with its
    loss.
    """

    visits: Sequence[TourVisit]
    results: Sequence[Mapping[str, Any]]
    best: BestState | None = None

    @property
    def trained(self) -> list[tuple[TrainVisit, Mapping[str, Any]]]:
        """Those that leave states, with their results."""
        return [
            (visit, told)
            for visit, told in zip(self.visits, self.results)
            if isinstance(visit, TrainVisit)
        ]

    @property
    def evaluated(self) -> list[tuple[EvaluateVisit, Mapping[str, Any]]]:
        """Those that evaluate states, with their results."""
        return [
            (visit, told)
            for visit, told in zip(self.visits, self.results)
            if isinstance(visit, EvaluateVisit)
        ]

    @property
    def visited(self) -> int:
        """How many segments were visited."""
        return sum(
            len(visit.segments) if isinstance(visit, EvaluateVisit) else 1 for visit in self.visits
        )


@dataclass(frozen=True)
class VisitResult:
    """What a training visit came to; it has no `state_table` where others followed in its tour.

    The frozen weights of its state may lie in a `base_table`.
    """

    rows: int
    loss: float
    seconds: float
    state_table: str | None
    base_table: str | None = None


class Fused(NamedTuple):
    """What became of a configuration that was trained with others: its visits, what they came to,
    and what its share of the job has cost; or why it cannot be trained."""

    trained: Trained
    results: Sequence[VisitResult]
    error: str | None
    cost: Cost


class Visits(Protocol):
    """What the workers of a call do. Steps are generators of statements for one worker's session.

    Laws:
    1. `store` commits the last state of a tour, the best one of it that is to be kept, and the log
       rows of all together, metrics included, or leaves all as it was.
    2. The log row of the first is committed as running before training starts, and none ever says
       completed without the state that `state_table` of the last one names.
    3. The state that a visit starts from is exactly the state that the visit before it left. A tour
       starts from one that is committed, or that its worker's trainer has, and is committed after
       that one or not at all.
    4. An evaluate visit changes no state.
    5. All rows of a segment reach the trainer, once, in the order of buffer_id.
    6. Steps may be abandoned at any statement: what is not committed then leaves no trace but a log
       row that says running.
    7. Between `begin` and `finish` of a tour its worker stores the tour before it, if that is still
       to be stored, and does nothing else; what that one has left is stored as it was when the
       other began.
    """

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer of a worker that has none."""
        ...

    def settle(self, worker: Worker) -> Steps[None]:
        """Let a worker tell what it has cost since its last job."""
        ...

    def release(self, worker: Worker) -> Steps[None]:
        """End the trainer of a worker, if it has one: the next visit starts another."""
        ...

    def train(self, worker: Worker, tour: Sequence[TourVisit]) -> Steps[Trained]:
        """Train one visit, or average what others have left; or make several of one configuration,
        of which the first one trains.

        Of several the first ones alone, where not all segments are kept in the trainer's memory, or
        where the loss that an evaluation finds is no number.
        """
        ...

    def train_fused(
        self, worker: Worker, tours: Sequence[Sequence[TrainVisit]]
    ) -> Steps[list[Fused]]:
        """Train visits of several configurations of one program to the same segments in one job,
        and store all that they leave; none of them where not all segments are kept in the trainer's
        memory, or their states are too large for it."""
        ...

    def stores_beside(self, worker: Worker, trained: Trained, datasets: Sequence[Dataset]) -> bool:
        """Whether another tour, over these partitions, can begin before that is stored."""
        ...

    def begin(self, worker: Worker, tour: Sequence[TourVisit]) -> Steps[None]:
        """Begin to train a tour, as `stores_beside` has allowed."""
        ...

    def finish(self, worker: Worker, tour: Sequence[TourVisit]) -> Steps[Trained]:
        """Train to its end what was begun."""
        ...

    def store(self, worker: Worker, trained: Trained) -> Steps[list[VisitResult]]:
        """Store what visits have left, and log them as completed; what those that train came to."""
        ...

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[int, dict[str, Any]]]:
        """Evaluate one visit; by segment, per data set (training, validation) its rows and sums.

        Its first segment alone, where not all are kept in the trainer's memory.
        """
        ...

    def probe(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        """Time a configuration on the first buffer of a partition; nothing is logged or kept."""
        ...

    def restore(self, worker: Worker, state: StateSource, job: Job) -> Steps[bool]:
        """Whether all of a state fits the program of a job; ConfigFailure where not even its
        weights do.
        """
        ...

    def told(self, worker: Worker, state: StateSource, job: Job) -> Steps[dict[str, Any]]:
        """What a trainer says of the network of a state, by a job that sees no rows; nothing is
        logged or kept.
        """
        ...

    def store_features(
        self, worker: Worker, state: StateSource, job: Job, fillings: Sequence[Filling]
    ) -> Steps[None]:
        """Fill tables with what layers give for partitions, under a state, or leave all of them as
        they were.
        """
        ...

    def join(self, worker: Worker, joined: JoinedState, job: Job) -> Steps[StoredState]:
        """Make a state of the weights of several and log its table, or leave both as they were;
        where it lies then.
        """
        ...

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        """Evaluate outside a run, without a log; per data set key its rows and sums."""
        ...

    def outputs(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[Sequence[bytes]]:
        """Return for each row of a partition its target and its outputs, as float32, outside a
        run.
        """
        ...

    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: Mapping[str, Any],
    ) -> Steps[str | None]:
        """Open a prediction job for rows, in blocks as `request` says; what declares the cursor
        over its blocks.

        None where the worker has no rows.
        """
        ...

    def predicted(self, worker: Worker) -> Statement:
        """End a prediction job whose blocks have been fetched."""
        ...

    def results(self, worker: Worker, sums: Sums) -> Steps[dict[str, Any]]:
        """Final metrics from sums over segments; per data set its loss and metrics."""
        ...

    def keep(self, worker: Worker, best: BestState) -> Steps[StoredState]:
        """Copy a state and log it as the best, or leave both as they were; where it lies then."""
        ...


@runtime_checkable
class TrainingPlatform(Platform, Protocol):
    """A platform that packed tables are trained on. Its laws are those of `Platform`, and of the
    visits it makes.
    """

    def visits(
        self,
        trainers: Sequence[TrainerOptions],
        settings: Settings,
        workers: int,
        note: Callable[[str], None],
    ) -> Visits:
        """The visits of workers: `trainers` says how that of each is started, by its number.

        So many workers share what memory the settings leave them; `note` tells the caller
        something.
        """
        ...

    def scoring_trainers(self, trainers: int, is_local: bool) -> int:
        """Among how many trainers the cores of a machine are divided where so many score on it;
        `local` is whether the trainer is that of the caller's own session."""
        ...

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """Where rows of a table, by its oid, are predicted."""
        ...
