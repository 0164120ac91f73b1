"""Requests to a trainer: a job on a program, the state that it starts from, and its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.params.fit_params import FitParams
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.records import dataclass, field


@dataclass(frozen=True)
class Job:
    """A job of a trainer, see docs/internals/wire.md.

    Kinds are `train`, `fusion`, `average`, `restore`, `cuts`, `fronts`, `evaluate`, `predict` and
    `time`.
    """

    kind: str
    program: JsonObject
    result_key: str  # names the state that the trainer has afterwards
    program_key: str | None = None  # names the program that the trainer is to cache
    fit: FitParams | None = None  # options of a training visit
    order: Mapping[str, int] | None = None  # decides the order of the rows
    forms: JsonObject | None = None  # execution modes that the program may use
    callbacks: JsonObject | None = None  # output for TensorBoard
    compilation: str | None = None  # names the compiled code, for later users of the trainer
    block_rows: int | None = None  # rows of neighbouring buffers that are read as one buffer
    # Names of datasets to add up, by data set, if the evaluation covers the whole epoch.
    total: Mapping[str, Sequence[str]] | None = None
    layers: Sequence[str] | None = None  # layers of `fronts`
    scale: Mapping[str, Any] | None = None  # of labels; results are in the target's units
    visits: Sequence[JsonObject] | None = None  # of each state of a fusion
    beside: bool | None = None  # the state joins a fusion that another state began
    grows: Sequence[str] | None = None  # names of the datasets that trees grow over; see `Dataset`
    grow_until: float | None = None  # time at which trees end to grow, in seconds since 1970

    @property
    def passes(self) -> int:
        """The number of passes over the rows."""
        return self.fit.passes if self.kind == "train" and self.fit else 1

    @property
    def leaves_state(self) -> bool:
        """True if the trainer has the state `result_key` afterwards."""
        return self.kind != "time"

    def to_json(self, is_program_known: bool = False) -> JsonObject:
        """Return the job as JSON for the trainer.

        Args:
            is_program_known: leave out the program, which may be long.
        """
        fields = _list_fields(self, is_program_known)
        fields["job"] = fields.pop("kind")
        if self.fit is not None:
            fields["fit"] = self.fit.to_json()
        return fields


@dataclass(frozen=True)
class Sums:
    """Sums of losses and metrics over segments, for final metrics."""

    program: JsonObject
    sums: Mapping[str, Sequence[Sequence[float]]]  # by data set
    rows: Mapping[str, int]  # by data set
    program_key: str | None = None
    scale: Mapping[str, Any] | None = None  # see `Job`

    def to_json(self, is_program_known: bool = False) -> JsonObject:
        """See `Job.to_json`."""
        return _list_fields(self, is_program_known)


def _list_fields(record: Job | Sums, is_program_known: bool) -> JsonObject:
    """Return the fields of a record that have values, perhaps without its program."""
    fields = {name: value for name, value in vars(record).items() if value is not None}
    if is_program_known:
        del fields["program"]
    return fields


@dataclass(frozen=True)
class Dataset:
    """The partition of one segment of a packed table, or a sample of it.

    The trainer has the whole partition or sample, even if a job uses only some of its buffers.
    """

    table: PackedTable
    segment_id: int
    buffers: tuple[int, ...] | None = None  # buffers that a job uses; None for all
    period: int = 1  # the sample has the buffers whose id is a multiple of this
    cache_share: float = 1.0  # part of the trainer's cache that it may fill, with those before it

    @property
    def key(self) -> str:
        """A name of this partition, unique in a run."""
        key = f"{self.table.relation.oid}/{self.segment_id}"
        return key if self.period == 1 else f"{key}/{self.period}"


@dataclass(frozen=True)
class Filling:
    """The outputs of a layer for a partition, to be stored in a table.

    The table has the columns of the partition's table, with these outputs in place of the inputs.
    """

    source: Dataset
    layer: str
    shape: tuple[int, ...]
    table: str


@dataclass(frozen=True)
class StateSource:
    """The state that a job starts from.

    A stored state is read from `stored`, or else by `sql`, which selects its chunks in order as
    columns part and chunk.

    Sources:
        new: initial weights.
        weights: weights of an architecture.
        chunks: a state in a table.
        weights_of_chunks: only the weights of a state in a table, for another optimizer.
        warm: a state for another architecture; the whole state if all of it fits.
        sealed: a state that the session must not see; a function of its owner begins the job.
        averaged: the mean of other states.
        kept: a state that the trainer has.
    """

    source: str
    key: str  # names the state
    seed: int
    sql: str = ""
    values: tuple[object, ...] = ()
    of: tuple[tuple[StateSource, int], ...] = ()  # other states, with their weight in a mean
    stored: StoredState | None = None

    @property
    def may_be_cached(self) -> bool:
        """True if a trainer may start from a state of this name that it has."""
        return self.source not in ("new", "sealed")

    @property
    def sealed(self) -> bool:
        """True if the session must not see the weights."""
        return self.source == "sealed"


@dataclass(frozen=True)
class RawRows:
    """Rows to predict."""

    table: str
    id: str  # expression for the id of a row `t`, as text
    data: str  # expression for the inputs of a row `t`, as bytea[]
    segments: Sequence[int] = ()  # segments whose workers predict them; any worker if empty
    contents: Mapping[int, int] = field(default_factory=dict)
    """Content ids of the segments that store the rows, by segment.

    If it is empty but there are segments, rows must be sent to the segments first.
    """
