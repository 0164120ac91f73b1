"""What a run is asked, checked, and what it finds out about a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cerebro_plpy.configs.config import Config
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.tables.architectures import StoredModel


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
