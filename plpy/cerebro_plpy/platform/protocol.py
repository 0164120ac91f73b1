"""What a run needs of the database it lives in, and the laws that every platform keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from cerebro_plpy.database.dispatch import Session, Steps
from cerebro_plpy.packing.packed_table import PackedTable


@dataclass(eq=False)
class Worker:
    """A session with its trainer, and what that trainer is known to hold.

    Workers of one number take turns: they are there for one place, with a framework each. On Greenplum the trainer is
    that of a segment, of which `segment_id` is the id.
    """

    number: int
    session: Session
    framework: str = "tensorflow"
    segment_id: int | None = None
    started: bool = False
    datasets: dict[str, bool] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    state: str = ""
    machine: str = ""
    threads: int = 0
    cache_bytes: int = 0

    def forget(self) -> None:
        """The trainer is gone: nothing it held can be relied on."""
        self.started, self.datasets, self.programs, self.state = False, {}, set(), ""


def session_role(framework: str, segment_id: int | None) -> str:
    """Which sessions can serve such a worker: those whose trainer has this framework, and is that of this segment."""
    return framework if segment_id is None else f"{framework} {segment_id}"


@dataclass(frozen=True)
class Dataset:
    """The partition of one segment of a packed table; `key` names it in the trainer."""

    table: PackedTable
    segment_id: int

    @property
    def key(self) -> str:
        """A name for this partition that no other partition of the same run has."""
        return f"{self.table.relation.oid}/{self.segment_id}"


@dataclass(frozen=True)
class StateSource:
    """Where a visit takes the state from: `new`, `weights` of an architecture, `chunks` of a table,
    `weights_of_chunks` alone, for another optimizer, or `sealed`: a function of its owner begins the job and fills it;
    or it is `averaged`.

    `key` names the state; `sql` and `values` read its chunks in order, as columns named part and chunk. An averaged one
    is the mean `of` others, each with the rows that it counts for.
    """

    source: str
    key: str
    seed: int
    sql: str = ""
    values: tuple[object, ...] = ()
    of: tuple[tuple[StateSource, int], ...] = ()


@dataclass(frozen=True)
class RawRows:
    """Rows to predict: their table, and of a row `t` the expressions for its id as text and its inputs as bytea[].

    On Greenplum `places` are the numbers of the segments where rows lie, by the keys of workers; where it is empty,
    rows can only be predicted after they have been brought to the worker's segment.
    """

    table: str
    id: str
    data: str
    places: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainVisit:
    """One training visit, with all that its statements need; or one of kind `average`, which needs no data.

    `state_table` takes the new state; it is still to be made where it replaces `replaced_table`. It is to be `emptied`
    before, unless it is known to have nothing of the segment; on PostgreSQL it always is, because nothing there tells
    states apart.
    """

    run_id: int
    epoch: int
    mst_key: int
    visit_no: int
    attempt: int
    dataset: Dataset
    state: StateSource
    job: dict[str, Any]
    state_table: str
    replaced_table: str | None = None
    emptied: bool = True
    kind: str = "train"

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The partitions that the trainer must have."""
        return (self.dataset,) if self.kind == "train" else ()


@dataclass(frozen=True)
class EvaluateVisit:
    """One evaluation of a configuration over partitions of a segment; `names` of them: training, validation."""

    run_id: int
    epoch: int
    mst_key: int
    attempt: int
    names: tuple[str, ...]
    datasets: tuple[Dataset, ...]
    state: StateSource
    job: dict[str, Any]


class Platform(Protocol):
    """The database as a run sees it. Steps are generators of statements for one worker's session.

    Laws:
    1. A train visit commits its new state and its log row together, or leaves both as they were.
    2. The log row is committed as running before training starts, and never says completed without
       the state that `state_table` names.
    3. The state that a visit starts from is exactly the state that the visit before it committed.
    4. An evaluate visit changes no state.
    5. All rows of a segment reach the trainer, once, in the order of buffer_id.
    6. Steps may be abandoned at any statement: what is not committed then leaves no trace but a log
       row that says running.
    """

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer of a worker that has none."""
        ...

    def train(self, worker: Worker, visit: TrainVisit) -> Steps[VisitResult]:
        """Train one visit, or average what others have left."""
        ...

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[str, Any]]:
        """Evaluate one visit; per data set (training, validation) its rows and sums."""
        ...

    def probe(self, worker: Worker, dataset: Dataset, state: StateSource, job: dict[str, Any]) -> Steps[dict[str, Any]]:
        """Time a configuration on the first buffer of a partition; nothing is logged or kept."""
        ...

    def results(self, worker: Worker, request: dict[str, Any]) -> Steps[dict[str, Any]]:
        """Final metrics from sums over segments; per data set its loss and metrics."""
        ...


@dataclass(frozen=True)
class VisitResult:
    """What a training visit came to.

    `timings` are those of forms that were measured in it; `fallback` says why no form of the program worked.
    """

    rows: int
    loss: float
    seconds: float
    state_table: str
    timings: Mapping[str, Any]
    fallback: str | None = None
