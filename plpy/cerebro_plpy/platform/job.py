"""What a trainer is asked: a job on a program, the state that it starts from, and the rows that it
sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cerebro_plpy.configs.params.fit_params import FitParams
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.records import dataclass, field


@dataclass(frozen=True)
class Job:
    """One job: `train`, `fusion`, `average`, `restore`, `cuts`, `fronts` of some `layers`,
    `evaluate`, `predict`, or `time` the forms of a program.

    `program` describes what is run, and `program_key` names it, where a trainer is to keep it under
    a name; `result_key` names the state that the trainer then holds. The rest is as the kind needs
    it: how a visit goes through its rows, in what order, which forms of the program it may use, and
    what is written for TensorBoard; `compilation` names what is compiled for it, for whoever has
    the trainer later. A visit that trains takes so many `block_rows` of neighbouring buffers as
    one. An evaluation that is all there is of an epoch says what is added up to a `total`: the
    names of datasets, by data set. A fusion trains several states, each of which makes `visits`:
    the first one begins it, and the others join `beside` it.
    """

    kind: str
    program: Mapping[str, Any]
    result_key: str
    program_key: str | None = None
    fit: FitParams | None = None
    order: Mapping[str, int] | None = None
    forms: Mapping[str, Any] | None = None
    callbacks: Mapping[str, Any] | None = None
    compilation: str | None = None
    block_rows: int | None = None
    total: Mapping[str, Sequence[str]] | None = None
    layers: Sequence[str] | None = None
    visits: Sequence[Mapping[str, Any]] | None = None
    beside: bool | None = None

    @property
    def passes(self) -> int:
        """How often the job goes through its rows."""
        return self.fit.passes if self.kind == "train" and self.fit else 1

    @property
    def leaves_state(self) -> bool:
        """Whether the trainer holds the state of that name afterwards."""
        return self.kind != "time"

    def to_json(self, known: bool = False) -> dict[str, Any]:
        """As the trainer wants it; without the program where that is `known` to it: an architecture
        may be long.
        """
        told = {
            "job": self.kind,
            "program": None if known else self.program,
            "program_key": self.program_key,
            "compilation": self.compilation,
            "result_key": self.result_key,
            "fit": self.fit and self.fit.to_json(),
            "order": self.order,
            "forms": self.forms,
            "callbacks": self.callbacks,
            "block_rows": self.block_rows,
            "total": self.total,
            "layers": self.layers,
            "visits": self.visits,
            "beside": self.beside,
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Sums:
    """Sums of losses and metrics over segments, and their rows, by data set, for the program that
    they come from.
    """

    program: Mapping[str, Any]
    sums: Mapping[str, Sequence[Sequence[float]]]
    rows: Mapping[str, int]
    program_key: str | None = None

    def to_json(self, known: bool = False) -> dict[str, Any]:
        """See `Job.to_json`."""
        told = {
            "program": None if known else self.program,
            "program_key": self.program_key,
            "sums": self.sums,
            "rows": self.rows,
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Dataset:
    """The partition of one segment of a packed table, or some of its `buffers`; `key` names it in
    the trainer.

    The trainer has the whole partition, whichever buffers a job is over.
    """

    table: PackedTable
    segment_id: int
    buffers: tuple[int, ...] | None = None

    @property
    def key(self) -> str:
        """A name for this partition that no other partition of the same run has."""
        return f"{self.table.relation.oid}/{self.segment_id}"


@dataclass(frozen=True)
class Filling:
    """What a layer gives for a partition, on its way into a table that is as the partition's, but
    for its inputs.
    """

    source: Dataset
    layer: str
    shape: tuple[int, ...]
    table: str


@dataclass(frozen=True)
class StateSource:
    """Where a job takes the state from: `new`, `weights` of an architecture, `chunks` of a table,
    `weights_of_chunks` alone, for another optimizer, or `warm`, whole where all of it fits, for
    another architecture; or `sealed`: a function of its owner begins the job and fills it; or it is
    `averaged`, or `joined`.

    `key` names the state; it is read where a visit left it, at `stored`, or else by `sql` and
    `values`: its chunks in order, as columns named part and chunk. An averaged one is the mean `of`
    others, each with the rows that it counts for; a joined one has the weights of others, one after
    another.
    """

    source: str
    key: str
    seed: int
    sql: str = ""
    values: tuple[object, ...] = ()
    of: tuple[tuple[StateSource, int], ...] = ()
    stored: StoredState | None = None

    @property
    def may_be_kept(self) -> bool:
        """Whether a trainer that holds a state of this name may start from that."""
        return self.source not in ("new", "sealed")

    @property
    def sealed(self) -> bool:
        """Whether it is weights that the session must not see."""
        return self.source == "sealed"


@dataclass(frozen=True)
class RawRows:
    """Rows to predict: their table, and of a row `t` the expressions for its id as text and its
    inputs as bytea[].

    `segments` are the posts of the workers that predict them, none where it can be any one.
    `places` are the numbers of the segments where rows lie, by the posts; where it is empty and
    there are posts, rows can only be predicted after they have been brought there.
    """

    table: str
    id: str
    data: str
    segments: Sequence[int] = ()
    places: Mapping[int, int] = field(default_factory=dict)
