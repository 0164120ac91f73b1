"""Frozen records that the parts of a run hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cerebro_plpy.fit_params import FitParams
from cerebro_plpy.params import CompileParams
from cerebro_plpy.per_output import Measured


@dataclass(frozen=True)
class Relation:
    """A table or view that exists: its name as the user wrote it, and as it must stand in a statement."""

    given: str
    schema: str
    name: str
    oid: int
    quoted: str


@dataclass(frozen=True)
class PackedTable:
    """A table made by a preprocessor, with what its summary says.

    `segments` are the segment ids; `key` is the SQL expression of a row's segment.
    `class_values` has, for each target, the class names in the order of the one-hot columns (None for a
    NULL class), or None where the target came encoded or is a float.
    """

    relation: Relation
    independent: tuple[str, ...]
    dependent: tuple[str, ...]
    dependent_types: tuple[str, ...]
    class_values: tuple[tuple[str | None, ...] | None, ...]
    class_types: tuple[str, ...]
    num_classes: tuple[int, ...] | None
    normalizing_const: float
    buffer_size: int
    input_shapes: tuple[tuple[int, ...], ...]
    target_shapes: tuple[tuple[int, ...], ...]
    float_targets: tuple[bool, ...]
    segments: tuple[int, ...]
    key: str
    rows: int

    def described(self) -> dict[str, Any]:
        """What output tables tell of it, as JSON can hold it."""
        names = (
            "rows",
            "dependent",
            "independent",
            "dependent_types",
            "class_values",
            "class_types",
            "normalizing_const",
            "float_targets",
            "target_shapes",
        )
        return {"table": self.relation.given, **{n: getattr(self, n) for n in names}}

    def targets(self) -> list[dict[str, Any]]:
        """The targets as the trainer wants them described."""
        return [
            {"kind": "float"} if is_float else {"kind": "onehot", "classes": shape[-1]}
            for is_float, shape in zip(self.float_targets, self.target_shapes)
        ]


@dataclass(frozen=True)
class StoredModel:
    """A row of an architecture table. `json` is the text as stored."""

    model_id: int
    json: str
    has_weights: bool


@dataclass(frozen=True)
class Config:
    """One configuration of a run: a row of the model selection table, parsed.

    Its metrics have names when its model is known.
    """

    mst_key: int
    model_id: int
    compile_text: str
    fit_text: str
    compile: CompileParams
    fit: FitParams
    metrics: tuple[Measured, ...] = ()


@dataclass(frozen=True)
class WarmState:
    """How an earlier state of a configuration is read: as `chunks` of a whole state, or `weights_of_chunks` alone."""

    source: str
    sql: str
    values: tuple[object, ...]


@dataclass(frozen=True)
class FitRequest:
    """A call of fit whose arguments have been checked.

    `backends` are the frameworks by mst_key; none where they are still to be chosen.
    `orders` are the segments as an earlier run visited them, by (mst_key, epoch), for a replay; `forms` are
    those of its visits, by (mst_key, epoch, segment), and `threads` those of its trainers. `training_metrics` says
    whether the training set is evaluated too; `gpus` are the numbers of the devices that trainers share. A visit is
    tried `max_attempts` times; after `max_runtime` seconds no visit begins any more.
    """

    source: PackedTable
    validation: PackedTable | None
    configs: tuple[Config, ...]
    architectures: Mapping[int, StoredModel]
    architecture_table: Relation
    epochs: int
    evaluate_epochs: tuple[int, ...]
    seed: int
    schedule: str
    workers: int
    gpus: tuple[int, ...]
    dtype_policy: str | None
    warm_states: Mapping[int, WarmState]
    orders: Mapping[tuple[int, int], tuple[int, ...]]
    forms: Mapping[tuple[int, int, int], str]
    threads: int | None
    backends: Mapping[int, str]
    name: str | None
    spec: dict[str, Any]
    max_attempts: int
    max_runtime: float | None
    training_metrics: bool = True


@dataclass(frozen=True)
class Evaluation:
    """Loss and metrics of a configuration over a whole data set after an epoch."""

    mst_key: int
    epoch: int
    dataset: str
    loss: float
    metrics: tuple[float, ...]
    elapsed: float


class StatePlace(NamedTuple):
    """Where a state lies: a table, and on Greenplum the segment's rows of it, beside which others' may be."""

    table: str
    segment_id: int


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
