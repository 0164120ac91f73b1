"""What a run works with, read and checked; and what it finds out about a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.early_stopping import EarlyStopping
from cerebro_plpy.configs.prior_trials import PriorTrial
from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.configs.search_space.sampler_space import Point, PointSpace
from cerebro_plpy.configs.train_spec import GroupLayout
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.scheduling.planning.activation_cuts import Cut
from cerebro_plpy.scheduling.planning.run_plan import RunPlan
from cerebro_plpy.scheduling.quota.cost_limits import CostLimits
from cerebro_plpy.scheduling.search.promotion_rules import Rule
from cerebro_plpy.scheduling.search.search_state import DecisionBatch
from cerebro_plpy.tables.architectures import BuiltConfigs, StoredModel

BUDGET_OVER = "the budget was over"
"""The reason in the log for configurations that the budget ended, and for visits cancelled then."""


@dataclass(frozen=True)
class WarmState:
    """How an earlier state of a configuration is read: as `chunks` of a whole state,
    `weights_of_chunks` alone, or `warm`: whole where all of it fits.

    `other_architecture` is whether that of the configuration is not the one that the state is of;
    `epochs` are those that it was trained.
    """

    source: str
    sql: str
    values: tuple[object, ...]
    has_other_architecture: bool = False
    epochs: int = 0


class Deadline(NamedTuple):
    """When the budget of a run is over, in seconds from the moment at which its epoch loop begins.

    From `last_visit` on no visit to train begins, and configurations are taken to their ends; at
    `cancel` what is under way of that is cancelled, but for a run that has no state to make a model
    of: it has until it is `over`. In the caller's own session a statement comes to its end before.
    """

    last_visit: float
    cancel: float
    end: float

    def shift_earlier(self, seconds: float) -> Deadline:
        """So much earlier, at the earliest at once.

        >>> Deadline(5.0, 9.0, 10.0).shift_earlier(6.0)
        Deadline(last_visit=0.0, cancel=3.0, end=4.0)
        """
        return Deadline(*(max(0.0, moment - seconds) for moment in self))


class Ending(NamedTuple):
    """Where a budget ended a configuration: after so many visits to train, the last state
    `evaluated` or not.
    """

    visits: int
    evaluated: bool


class CloneStart(NamedTuple):
    """From which state a warm clone begins: that of its parent, as so many visits have left it."""

    parent: int
    visits: int


@dataclass(frozen=True)
class Replay:
    """What a run takes over from an earlier one, for the same bits.

    `orders` are the segments as that one visited them, by (mst_key, epoch); `forms` are those of
    its visits, by (mst_key, epoch, segment), and `threads` those of its trainers, None for any.
    `endings` are those of the configurations that its budget ended, by mst_key: no clock decides
    that again. `limits` are the epochs to which its search let configurations train; none where all
    went on to the last one. `joined` says by mst_key where those came from that the call did not
    name, and `starts` from which states the warm clones among all begin. Where a search by
    `patience` kept best states, metrics are to be computed after the same epochs (`evaluated`).
    `whole` has how many epochs those trained, by mst_key, that were completed: of a clone they may
    be fewer than those of the run. `cuts` are the layers on whose outputs configurations were
    trained, by mst_key: with None it is still to be chosen which are. One that averages takes over
    in how many `copies`.
    """

    orders: Mapping[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    forms: Mapping[tuple[int, int, int], str] = field(default_factory=dict)
    threads: int | None = None
    endings: Mapping[int, Ending] = field(default_factory=dict)
    max_epochs: Mapping[int, int] = field(default_factory=dict)
    added_sources: Mapping[int, str] = field(default_factory=dict)
    clone_starts: Mapping[int, CloneStart] = field(default_factory=dict)
    patience: EarlyStopping | None = None
    evaluate_epochs: tuple[int, ...] = ()
    completed_epochs: Mapping[int, int] = field(default_factory=dict)
    cut_layers: Mapping[int, str] | None = None
    copies: int | None = None


class CacheKey(NamedTuple):
    """What tells of a table what it has: a hash of all that decides that, the table whose rows it
    is of, and the transaction before which these were there."""

    fingerprint: str
    source_oid: int
    snapshot_xmax: str


class Activations(NamedTuple):
    """What the layer of a cut gives for all rows, as packed tables of its own: whether an earlier
    run has `kept` all of it, and what tells it to later ones, where these may have it."""

    cut: Cut
    source: PackedTable
    validation: PackedTable | None
    exists: bool = False
    cache_keys: tuple[CacheKey | None, ...] = ()

    @property
    def tables(self) -> tuple[PackedTable, ...]:
        """Both, as far as there are two."""
        return (self.source, self.validation) if self.validation else (self.source,)


BuildConfigs = Callable[[Mapping[int, Mapping[str, Any]]], BuiltConfigs]
"""Makes configurations by mst_key, each of what a row says of it."""


class SamplingPlan(NamedTuple):
    """What a search draws configurations of, by which sampler, how many are still to be drawn; and
    those that were, by mst_key, with the `points` of the space that they are if the sampler learns.
    It is `known` where others lie, and how those of `earlier` runs stood. So many are
    `left_of_groups`, where each has a selection of its own."""

    space: PointSpace
    sampler: str
    remaining: int
    points: Mapping[int, Point | None]
    existing_points: Mapping[int, Point | None] = {}
    prior_trials: tuple[PriorTrial, ...] = ()
    remaining_by_group: Mapping[str, int] = {}

    @property
    def total_remaining(self) -> int:
        """How many are still to be drawn in all."""
        return self.remaining + sum(self.remaining_by_group.values())


class SearchRequest(NamedTuple):
    """What decides, by its name, which configurations go on, over all of a run, failed ones too;
    what others are drawn of, if any are; how many that will hardly go on may keep their states,
    None for all; and which are of `groups`."""

    name: str
    rule: Rule
    mst_keys: tuple[int, ...]
    sampling: SamplingPlan | None = None
    live_states: int | None = None
    groups: Mapping[int, str] = {}


@dataclass(frozen=True)
class FitRequest:
    """What is asked of a run, with all that it names.

    `backends` are the frameworks by mst_key; none where they are still to be chosen. `workers` is
    the largest number of them that train at a time, `gpus` are the numbers of the devices that
    trainers share; after `max_runtime` seconds no visit begins any more, and of `deadline` a run
    with a budget knows. What a worker trains may wait `commit_seconds` for its commit. A `quiet`
    one tells of no epoch, nor of what was stopped. Without a `search` all configurations are
    trained to the last epoch, unless somebody says otherwise. `maker` makes configurations of
    templates, in a run that has these. `decided` is what was decided before it was resumed; by then
    it may have more `epochs` than its call has said. A search by `patience` stops those that do not
    say themselves when they stop. Where buffers hold one group each, `groups` says which are whose,
    and configurations that see all of them train on `block_rows` of neighbours together. It may
    cost no more than its `allowance`, if there is one. Its `plan` is made when its trainers have
    started. Configurations of which there are `features`, by mst_key, train on these instead of the
    rows. Its `strategy` is the one that was asked for, or that it has changed to before it was
    resumed, by so many `replans`; None where it is to be chosen.
    """

    spec: RunSpec
    source: PackedTable
    validation: PackedTable | None
    configs: tuple[Config, ...]
    architectures: Mapping[int, StoredModel]
    architecture_table: Relation | None
    workers: int
    gpus: tuple[int, ...]
    backends: Mapping[int, str]
    max_runtime: float | None = None
    deadline: Deadline | None = None
    replay: Replay = field(default_factory=Replay)
    build_configs: BuildConfigs | None = None
    warm_states: Mapping[int, WarmState] = field(default_factory=dict)
    is_quiet: bool = False
    commit_seconds: int = 0
    search: SearchRequest | None = None
    logged_decisions: tuple[DecisionBatch, ...] = ()
    patience: EarlyStopping | None = None
    groups: Mapping[str, GroupLayout] = field(default_factory=dict)
    block_rows: int | None = None
    plan: RunPlan | None = None
    extended_epochs: int | None = None
    cost_limits: CostLimits | None = None
    activations: Mapping[int, Activations] = field(default_factory=dict)
    strategy: str | None = None
    replans: int = 0

    def segments_of(self, group: str | None) -> tuple[int, ...]:
        """The segments that configurations of a group visit; all where they are of none."""
        return self.source.segments if group is None else tuple(sorted(self.groups[group].training))

    @property
    def segment_subsets(self) -> Mapping[int, frozenset[int]]:
        """Those of configurations that are of a group, by mst_key."""
        grouped = [config for config in self.configs if config.group is not None]
        return {config.mst_key: frozenset(self.segments_of(config.group)) for config in grouped}

    def tables_of(self, mst_key: int) -> tuple[PackedTable, PackedTable | None]:
        """What a configuration is trained on, and what it is validated on, if there is that."""
        features = self.activations.get(mst_key)
        return (
            (self.source, self.validation)
            if features is None
            else (features.source, features.validation)
        )

    @property
    def row_tables(self) -> tuple[PackedTable, ...]:
        """Those of the rows themselves, whatever is stored of them: to train on, and to validate on
        if there is one.
        """
        return (self.source, self.validation) if self.validation else (self.source,)

    @property
    def tables(self) -> tuple[PackedTable, ...]:
        """All that its configurations see, and those that may join."""
        pairs = (
            [(self.source, self.validation)]
            if len(self.activations) < len(self.configs) or self.search
            else []
        )
        pairs += [self.tables_of(key) for key in self.activations]
        return tuple(dict.fromkeys(table for pair in pairs for table in pair if table))

    @property
    def decoded_bytes(self) -> int:
        """What all of that takes in a trainer."""
        return sum(table.decoded_bytes for table in self.tables)

    @property
    def last_epoch(self) -> int:
        """The last epoch that any configuration is trained for, as far as it is known when the loop
        begins.
        """
        return self.extended_epochs or self.spec.epochs

    def with_configs(
        self,
        joined: BuiltConfigs,
        backends: Mapping[int, str],
        warm_states: Mapping[int, WarmState],
    ) -> FitRequest:
        """The request where others have joined."""
        configs, architectures = (
            (*self.configs, *joined.configs),
            {**self.architectures, **joined.architectures},
        )
        return replace(
            self,
            configs=configs,
            architectures=architectures,
            backends=backends,
            warm_states=warm_states,
        )


@dataclass(frozen=True)
class Evaluation:
    """Loss and metrics of a configuration over a whole data set after an epoch."""

    mst_key: int
    epoch: int
    dataset: str
    loss: float
    metrics: tuple[float, ...]
    elapsed: float
