"""The plan of a run: strategies to divide its work among workers, their expected times, a choice.

All compared strategies are sequential SGD for each config, so the choice does not change what is
learned. Model averaging does; a run averages only if a user requests it, and then no other strategy
is compared.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.nouns import count_nouns, match_verb
from cerebro_plpy.records import dataclass, field, fields, replace
from cerebro_plpy.scheduling.planning import run_duration
from cerebro_plpy.scheduling.planning.simulation import Case, ConfigCost, Outcome
from cerebro_plpy.scheduling.quota.cost_limits import Usage
from cerebro_plpy.scheduling.schedule.placement import assign_segments, divide_segments
from cerebro_plpy.scheduling.schedule.schedule import Epochs, Plan, Segments
from cerebro_plpy.scheduling.schedule.scheduling_policies import REPLAY

Keys = tuple[int, ...]  # mst_keys
# Names of strategies.
MOP = "mop"
TASK = "task"
WIDE = "wide"
AVERAGE = "average"
LATE = "late_average"
AVERAGES = (AVERAGE, LATE)
STRATEGY_TEXTS = {
    MOP: "configurations hop, each worker has segments",
    TASK: "configurations stay, segments come to them",
    WIDE: "one trainer has all cores",
    AVERAGE: "each segment trains a copy of a configuration, and the mean of them goes on",
    LATE: "copies of a configuration hop among segments of their own, and the mean of them goes on",
}
WORTHWHILE_RATIO = 0.9
"""A strategy replaces the usual one only if it takes at most this part of the time."""

# Sources of the times of a program.
MEASURED = "measured"
TIMED = "timed"
PROBED = "probed"
UPPER_BOUND = "whole"
SAME_TEMPLATE = "like"
GUESSED = "guessed"
UNKNOWN = "unknown"
SOURCE_TEXTS = {
    MEASURED: "measured in an earlier run",
    TIMED: "timed in an earlier run",
    PROBED: "probed now",
    UPPER_BOUND: "probed now with the layers whose outputs are stored: at most",
    SAME_TEMPLATE: "measured in an earlier run of the template over the table",
    GUESSED: "guessed by the number of weights",
    UNKNOWN: "unknown: nobody has timed it yet",
}

LOGGED_NAMES = {
    "row_seconds": "row",
    "evaluation_row_seconds": "evaluated_row",
    "lane_gain": "gained",
    "segment_subsets": "own",
    "may_end_early": "sooner",
    "capacity_bytes": "room",
    "exists": "kept",
    "strategy": "chosen",
    "alternatives": "others",
    "startup_seconds": "begun",
    "extra_seconds": "beside",
    "stored_layers": "stored",
}
"""Fields of the records below that have another name in the log."""


@dataclass(frozen=True)
class Program:
    """A program that is compiled for configs, and its costs."""

    name: str
    configs: Keys
    backend: str
    batch_size: int
    source: str  # of the times
    row_seconds: float | None = None  # None if unknown
    evaluation_row_seconds: float = 0.0
    compile: float = 0.0  # seconds
    hop: float = 0.0  # seconds to read a state
    store: float = 0.0  # seconds to store a state
    form: str | None = None
    state_bytes: int | None = None
    spread: float | None = None  # standard deviation of the visits' seconds, relative to the mean
    lanes: int | None = None  # number of its configs that can train in one call
    lane_gain: float | None = None
    """Part of the time that lanes save; None if unknown."""
    shards: tuple[Mapping[str, Any], ...] = ()
    """Layers and bytes of the shards that share the memory of a trainer in turn."""


@dataclass(frozen=True)
class Work:
    """The work of a run, whatever the strategy."""

    epochs: int
    evaluate_epochs: Epochs
    segments: Segments
    rows: Mapping[int, int]  # of a training visit, by mst_key
    evaluated_rows: float  # of an evaluating visit
    schedule: str
    commit_seconds: float = 0.0
    segment_subsets: Mapping[int, Segments] = field(default_factory=dict)
    """Segments by mst_key, of configs that do not visit all segments."""
    may_end_early: bool = False  # as a search may
    copies: int = 0  # number of averaged copies; 0 without averaging


@dataclass(frozen=True)
class Strategy:
    """A way to divide the work among workers."""

    name: str
    workers: int
    threads: int  # of each worker
    seconds: float | None = None  # expected; None if unknown

    @property
    def is_stationary(self) -> bool:
        """Return True if every worker may serve all segments."""
        return self.name not in (MOP, *AVERAGES)


@dataclass(frozen=True)
class Data:
    """The sizes of the data."""

    training_rows: int
    rows: int
    bytes: int  # of all rows in a trainer
    capacity_bytes: int  # for rows, in each trainer
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class StoredLayer:
    """Activations of a frozen layer that are stored for configs."""

    layer: str
    configs: Keys
    rows: int
    bytes: int  # of all rows
    seconds: float  # expected for all workers together; 0 if an earlier run has stored them
    exists: bool = False


@dataclass(frozen=True)
class RunPlan:
    """The expected course of a run."""

    work: Work
    programs: tuple[Program, ...]
    strategy: Strategy
    alternatives: tuple[Strategy, ...]
    data: Data
    startup_seconds: float = 0.0
    """Seconds from the run's first line in the log to this estimate."""
    extra_seconds: float = 0.0
    """Further seconds that do not belong to visits."""
    error: float | None = None  # expected relative error of the seconds
    compiled: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Programs that workers have before the run, by worker."""
    stored_layers: tuple[StoredLayer, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Return the expected seconds of the whole run; None if unknown."""
        if self.strategy.seconds is None:
            return None
        preparation = self.startup_seconds + self.storing_seconds
        return preparation + self.strategy.seconds + self.extra_seconds

    @property
    def storing_seconds(self) -> float:
        """Return the seconds that storing activations takes."""
        return sum(layer.seconds for layer in self.stored_layers)

    @property
    def is_upper_bound(self) -> bool:
        """Return True if the run may take less than `seconds`."""
        return self.work.may_end_early or any(
            program.source == UPPER_BOUND for program in self.programs
        )

    @property
    def visit_seconds(self) -> dict[int, float]:
        """Return the expected seconds of a training visit by mst_key, as far as they are known."""
        return {
            key: program.row_seconds * self.work.rows[key]
            for program in self.programs
            if program.row_seconds is not None
            for key in program.configs
        }

    def to_json(self) -> dict[str, Any]:
        """Return the plan as the log stores it."""
        return _record_to_json(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunPlan:
        """Read a plan that `to_json` has returned.

        Raises:
            TypeError, KeyError, ValueError, AttributeError: the values are malformed.
        """
        work = _read_record(Work, values["work"])
        if work.copies > len(work.segments):
            raise ValueError(
                f"{count_nouns(work.copies, 'copy')} of a configuration "
                f"{match_verb(work.copies, 'trains')} on "
                f"{count_nouns(len(work.segments), 'segment')}"
            )
        work = replace(
            work,
            rows={int(key): int(count) for key, count in work.rows.items()},
            segment_subsets={
                int(key): tuple(segments) for key, segments in work.segment_subsets.items()
            },
        )
        return cls(
            work=work,
            programs=tuple(_read_record(Program, program) for program in values["programs"]),
            strategy=_read_record(Strategy, values["chosen"]),
            alternatives=tuple(_read_record(Strategy, strategy) for strategy in values["others"]),
            data=_read_record(Data, values["data"]),
            startup_seconds=float(values["begun"]),
            extra_seconds=float(values["beside"]),
            error=values["error"],
            compiled={int(worker): tuple(names) for worker, names in values["compiled"].items()},
            stored_layers=tuple(
                _read_record(StoredLayer, layer) for layer in values.get("stored", ())
            ),
        )


def _record_to_json(record: Any) -> dict[str, Any]:
    return {
        LOGGED_NAMES.get(attribute.name, attribute.name): _value_to_json(
            getattr(record, attribute.name)
        )
        for attribute in fields(record)
    }


def _value_to_json(value: Any) -> Any:
    if isinstance(value, (Work, Program, Strategy, Data, StoredLayer)):
        return _record_to_json(value)
    if isinstance(value, tuple):
        return tuple(map(_value_to_json, value))
    return value


def _read_record(kind: Any, values: Mapping[str, Any]) -> Any:
    arguments = {}
    for attribute in fields(kind):
        key = LOGGED_NAMES.get(attribute.name, attribute.name)
        if key in values:
            value = values[key]
            if isinstance(value, list):
                value = tuple(value)
            arguments[attribute.name] = value
    return kind(**arguments)


class PlanInputs(NamedTuple):
    """The inputs of planning that are the same for all strategies."""

    work: Work
    orders: Mapping[tuple[int, int], Sequence[int]] = {}  # of a replay, by mst_key and epoch
    compiled: Mapping[int, Collection[str]] = {}  # programs by worker


def make_case(inputs: PlanInputs, programs: Sequence[Program], strategy: Strategy) -> Case | None:
    """Return the simulation case of a strategy; None if times or logged orders are unknown."""
    work = inputs.work
    if work.schedule == REPLAY and not inputs.orders:
        return None
    costs = {
        key: ConfigCost(
            program=program.name,
            train=program.row_seconds * work.rows[key],
            evaluate=program.evaluation_row_seconds * work.evaluated_rows,
            hop=program.hop,
            store=program.store,
            compile=program.compile,
        )
        for program in programs
        if program.row_seconds is not None
        for key in program.configs
    }
    if len(costs) < len(work.rows) or not costs:
        return None
    plan = Plan(
        epochs=work.epochs,
        segments=work.segments,
        workers=assign_segments(work.segments, range(strategy.workers)),
        evaluate_epochs=frozenset(work.evaluate_epochs),
        copies=divide_segments(work.segments, work.copies) if work.copies else (),
        segment_subsets={
            key: frozenset(segments) for key, segments in work.segment_subsets.items()
        },
    )
    return Case(
        plan=plan,
        costs=costs,
        schedule=work.schedule,
        is_stationary=strategy.is_stationary,
        orders=inputs.orders,
        compiled={
            worker: names for worker, names in inputs.compiled.items() if worker < strategy.workers
        },
        commit_seconds=work.commit_seconds,
        max_evaluations=1 if work.may_end_early else sys.maxsize,
    )


def estimate_outcome(
    inputs: PlanInputs, programs: Sequence[Program], strategy: Strategy
) -> Outcome | None:
    """Return the expected outcome of a strategy; None if it is unknown."""
    case = make_case(inputs, programs, strategy)
    return run_duration.estimate_run(case) if case else None


def estimate_strategy(
    inputs: PlanInputs, programs: Sequence[Program], strategy: Strategy
) -> Strategy:
    """Return the strategy with its expected seconds."""
    outcome = estimate_outcome(inputs, programs, strategy)
    return replace(strategy, seconds=outcome.seconds if outcome else None)


def estimate_usage(plan: RunPlan, outcome: Outcome, tables: int) -> Usage:
    """Return the resources that a run is expected to use.

    Args:
        tables: number of state tables of each config, all at their final size.
    """
    # The work of a long run is extrapolated from its first epochs, and may exceed its workers'.
    busy_seconds = (1 - outcome.idle_share) * outcome.seconds * len(outcome.busy_seconds)
    worker_seconds = busy_seconds + plan.strategy.workers * plan.storing_seconds
    state_bytes = sum(
        (program.state_bytes or 0) * len(program.configs) for program in plan.programs
    )
    return Usage(
        cpu_seconds=worker_seconds * plan.strategy.threads,
        gpu_seconds=worker_seconds * bool(plan.data.gpus),
        byte_seconds=tables * state_bytes * outcome.seconds,
    )


def choose_strategy(usual: Strategy, alternatives: Sequence[Strategy]) -> Strategy:
    """Return the fastest strategy: the usual one, unless another one is expected to save enough.

    >>> mop, task = Strategy(MOP, 3, 1, 7.0), Strategy(TASK, 3, 1, 9.0)
    >>> choose_strategy(task, [mop]).name, choose_strategy(mop, [task]).name
    ('mop', 'mop')
    >>> choose_strategy(replace(task, seconds=None), [mop]).name
    'task'
    """
    timed = [(option.seconds, option) for option in alternatives if option.seconds is not None]
    if not timed or usual.seconds is None:
        return usual
    seconds, fastest = min(timed, key=lambda pair: pair[0])
    if seconds > WORTHWHILE_RATIO * usual.seconds:
        return usual
    return fastest


def may_improve(inputs: PlanInputs, programs: Sequence[Program], usual: Strategy) -> bool:
    """Return True if another strategy with as many workers might save enough."""
    case = make_case(inputs, programs, usual)
    if case is None or usual.seconds is None:
        return False
    return run_duration.lower_bound(case) <= WORTHWHILE_RATIO * usual.seconds


def describe_bottleneck(case: Case) -> str:
    """Return a text on what determines the shortest possible time of a run."""
    if run_duration.longest_config_seconds(case) <= run_duration.balanced_seconds(case):
        return "the work of all configurations together"
    seconds = {
        key: cost.train * len(case.plan.segments_of(key)) for key, cost in case.costs.items()
    }
    return f"the longest configuration, mst_key={max(seconds, key=lambda key: seconds[key])}"
