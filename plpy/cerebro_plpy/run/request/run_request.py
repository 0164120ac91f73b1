"""The request of a run, read and checked; and the evaluations of its configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.boosted_trees import is_boosted_trees
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
"""The reason in the log for configurations that the budget ended and visits that it cancelled."""
RETURNED = "the run ended before its budget"
"""The beginning of the reason in the log for configurations that an early return ended."""


@dataclass(frozen=True)
class WarmState:
    """A stored state from which a configuration starts."""

    # "chunks" of a whole state, "weights_of_chunks" alone, or "warm": whole if all of it fits.
    source: str
    sql: str  # query that reads the state
    values: tuple[object, ...]  # its parameters
    has_other_architecture: bool = False  # the state is of another architecture than the config
    epochs: int = 0  # epochs that the state was trained


class Deadline(NamedTuple):
    """The moments at which the budget of a run ends, in seconds since its epoch loop began."""

    last_visit: float  # no training visit begins any more; configurations are completed
    cancel: float  # visits under way are cancelled, unless no configuration has a state yet
    # Visits of a run without a state are cancelled, too. In the caller's own session, a running
    # statement ends first.
    end: float
    # Time after the end in which the first configuration of a run without a state may still begin
    # and make a visit: a model that is late is better than none.
    grace: float = 0.0
    elapsed: float = 0.0  # time of the budget that was spent before

    def shift_earlier(self, seconds: float) -> Deadline:
        """Return the deadline moved earlier, but not before the epoch loop begins.

        >>> Deadline(5.0, 9.0, 10.0).shift_earlier(6.0)
        Deadline(last_visit=0.0, cancel=3.0, end=4.0, grace=0.0, elapsed=6.0)
        """
        return Deadline(
            last_visit=max(0.0, self.last_visit - seconds),
            cancel=max(0.0, self.cancel - seconds),
            end=max(0.0, self.end - seconds),
            grace=self.grace,
            elapsed=self.elapsed + seconds,
        )


class Ending(NamedTuple):
    """The end of a configuration whose budget was over."""

    visits: int  # number of its training visits
    evaluated: bool  # metrics of its last state were computed


class CloneStart(NamedTuple):
    """The state from which a warm clone begins."""

    parent: int  # mst_key
    visits: int  # visits of the parent that led to the state


@dataclass(frozen=True)
class Replay:
    """Decisions of an earlier run that a replay repeats, so that it computes the same bits.

    Mappings without other keys are by mst_key.
    """

    # Segments in the order of their visits, by (mst_key, epoch).
    orders: Mapping[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    # Execution modes, by (mst_key, epoch, segment).
    forms: Mapping[tuple[int, int, int], str] = field(default_factory=dict)
    threads: int | None = None  # threads of each trainer; None for any number
    # Configurations that the budget ended: in a replay, no clock decides that again.
    endings: Mapping[int, Ending] = field(default_factory=dict)
    # Last epochs that the search allowed; without an entry, all epochs.
    max_epochs: Mapping[int, int] = field(default_factory=dict)
    # Origins of the configurations that the call did not name.
    added_sources: Mapping[int, str] = field(default_factory=dict)
    # States that warm clones start from.
    clone_starts: Mapping[int, CloneStart] = field(default_factory=dict)
    patience: EarlyStopping | None = None  # of a search by patience
    evaluate_epochs: tuple[int, ...] = ()  # epochs after which such a search needs metrics
    # Epochs of the completed configurations; those of a clone may be fewer than those of the run.
    completed_epochs: Mapping[int, int] = field(default_factory=dict)
    # Layers whose stored outputs were trained on; None if they are still to be chosen.
    cut_layers: Mapping[int, str] | None = None
    copies: int | None = None  # copies of each state in a run that averages


class CacheKey(NamedTuple):
    """The identity of the stored outputs of a layer for the rows of one table."""

    fingerprint: str  # hash of everything that decides the outputs
    source_oid: int  # the table
    snapshot_xmax: str  # all rows were written by transactions before this one


class Activations(NamedTuple):
    """Stored outputs of the layer of a cut for all rows, as packed tables."""

    cut: Cut
    source: PackedTable
    validation: PackedTable | None
    exists: bool = False  # an earlier run has stored all of it
    cache_keys: tuple[CacheKey | None, ...] = ()  # of each table; None if it cannot be reused

    @property
    def tables(self) -> tuple[PackedTable, ...]:
        """The tables to train on and to validate on."""
        return tuple(filter(None, (self.source, self.validation)))


BuildConfigs = Callable[[Mapping[int, Mapping[str, Any]]], BuiltConfigs]
"""Builds configurations from rows by mst_key."""


class SamplingPlan(NamedTuple):
    """The sampling of configurations for a search."""

    space: PointSpace
    sampler: str  # name of the algorithm
    remaining: int  # number of configurations still to be sampled
    points: Mapping[int, Point | None]  # of the sampled ones, by mst_key, if the sampler learns
    existing_points: Mapping[int, Point | None] = {}  # of other configurations, by mst_key
    prior_trials: tuple[PriorTrial, ...] = ()  # of earlier runs
    remaining_by_group: Mapping[str, int] = {}  # if each group has a search of its own

    @property
    def total_remaining(self) -> int:
        """The number of configurations still to be sampled, those of groups included."""
        return self.remaining + sum(self.remaining_by_group.values())


class SearchRequest(NamedTuple):
    """A search, which decides during the run which configurations are trained further."""

    name: str
    rule: Rule
    mst_keys: tuple[int, ...]  # of the whole run, failed configurations included
    sampling: SamplingPlan | None = None  # None if no configurations are sampled
    live_states: int | None = None  # unpromising configurations that keep states; None for all
    groups: Mapping[int, str] = {}  # group by mst_key


@dataclass(frozen=True)
class FitRequest:
    """The request of a run, with everything that it names."""

    spec: RunSpec  # as the log stores it
    source: PackedTable  # rows to train on
    validation: PackedTable | None  # rows to validate on
    configs: tuple[Config, ...]  # when the run begins
    architectures: Mapping[int, StoredModel]  # by model_id
    architecture_table: Relation | None  # has initial weights
    workers: int  # largest number of workers that train at a time
    gpus: tuple[int, ...]  # numbers of the devices that trainers share
    backends: Mapping[int, str]  # frameworks by mst_key; empty if they are still to be chosen
    max_runtime: float | None = None  # seconds after which no visit begins
    deadline: Deadline | None = None  # of a run with a time budget
    replay: Replay = field(default_factory=Replay)  # also of a run that is resumed
    build_configs: BuildConfigs | None = None  # of a run with templates
    # States that configurations start from, by mst_key.
    warm_states: Mapping[int, WarmState] = field(default_factory=dict)
    is_quiet: bool = False  # nothing but its start is reported, and it is removed at its end
    commit_seconds: int = 0  # longest time that trained visits may wait for their commit
    search: SearchRequest | None = None  # None: all configurations are trained to the end
    logged_decisions: tuple[DecisionBatch, ...] = ()  # made before the run was resumed
    patience: EarlyStopping | None = None  # for configurations without a callback of their own
    groups: Mapping[str, GroupLayout] = field(default_factory=dict)  # buffers of each group
    # With groups, a configuration for all of them trains on this many neighbouring rows together.
    block_rows: int | None = None
    plan: RunPlan | None = None  # made when the trainers have started
    extended_epochs: int | None = None  # if commands have given the run more epochs than its call
    cost_limits: CostLimits | None = None  # limits of CPU time or money
    # Stored layer outputs that a configuration trains on instead of the rows, by mst_key.
    activations: Mapping[int, Activations] = field(default_factory=dict)
    # Requested strategy, or the one of the last replanning; None if it is still to be chosen.
    strategy: str | None = None
    replans: int = 0  # number of strategy changes before the run was resumed
    starts: frozenset[int] = frozenset()  # configurations that end before the run returns early

    def segments_of(self, group: str | None) -> tuple[int, ...]:
        """Return the segments that configurations of a group visit; None means no group."""
        if group is None:
            return self.source.segments
        return tuple(sorted(self.groups[group].training))

    @property
    def segment_subsets(self) -> Mapping[int, frozenset[int]]:
        """The segments of each configuration that belongs to a group, by mst_key."""
        return {
            config.mst_key: frozenset(self.segments_of(config.group))
            for config in self.configs
            if config.group is not None
        }

    @property
    def whole_epoch_keys(self) -> frozenset[int]:
        """The configurations, by mst_key, that learn from the rows of all segments at once."""
        return frozenset(
            config.mst_key
            for config in self.configs
            if is_boosted_trees(self.architectures[config.model_id].json)
        )

    def tables_of(self, mst_key: int) -> tuple[PackedTable, PackedTable | None]:
        """Return the tables that a configuration is trained on and validated on."""
        activations = self.activations.get(mst_key)
        if activations is None:
            return self.source, self.validation
        return activations.source, activations.validation

    @property
    def sampling(self) -> SamplingPlan | None:
        """The sampling of its search, if there is any."""
        return self.search.sampling if self.search else None

    @property
    def row_tables(self) -> tuple[PackedTable, ...]:
        """The tables of rows to train on and to validate on, without stored layer outputs."""
        return tuple(filter(None, (self.source, self.validation)))

    @property
    def tables(self) -> tuple[PackedTable, ...]:
        """All tables that configurations read, including those that a search may add."""
        tables: list[PackedTable] = []
        if len(self.activations) < len(self.configs) or self.search:
            tables += self.row_tables
        for activations in self.activations.values():
            tables += activations.tables
        return tuple(dict.fromkeys(tables))

    @property
    def decoded_bytes(self) -> int:
        """The memory that all tables take in a trainer."""
        return sum(table.decoded_bytes for table in self.tables)

    @property
    def last_epoch(self) -> int:
        """The last epoch of any configuration, as known when the epoch loop begins."""
        return self.extended_epochs or self.spec.epochs

    def with_configs(
        self,
        added: BuiltConfigs,
        backends: Mapping[int, str],
        warm_states: Mapping[int, WarmState],
    ) -> FitRequest:
        """Return the request with added configurations and other backends and warm states."""
        return replace(
            self,
            configs=(*self.configs, *added.configs),
            architectures={**self.architectures, **added.architectures},
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
    elapsed: float  # seconds since the run began
