"""The plan of a run: how its work may be divided among workers, what each way is expected to take,
and which it has.

All ways that are compared are sequential SGD for each config, so that none of them changes what is
learned. One that averages is another way to learn: it is followed where somebody asks for it, and
no other way is compared with it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.records import asdict, dataclass, fields, replace
from cerebro_plpy.scheduling.planning import simulation
from cerebro_plpy.scheduling.planning.simulation import Case, Cost, Outcome
from cerebro_plpy.scheduling.quota.cost_limits import Spent
from cerebro_plpy.scheduling.schedule.placement import assign_segments, divide_segments
from cerebro_plpy.scheduling.schedule.schedule import Plan
from cerebro_plpy.scheduling.schedule.scheduling_policies import REPLAY

MOP, TASK, WIDE, AVERAGE, LATE = "mop", "task", "wide", "average", "late_average"
AVERAGES = (AVERAGE, LATE)
WORTH = 0.9
"""The part of the time of the usual strategy that another one must promise."""
MEANINGS = {
    MOP: "configurations hop, each worker has segments",
    TASK: "configurations stay, segments come to them",
    WIDE: "one trainer has all cores",
    AVERAGE: "each segment trains a copy of a configuration, and the mean of them goes on",
    LATE: "copies of a configuration hop among segments of their own, and the mean of them goes on",
}
MEASURED, TIMED, PROBED, GUESSED, UNKNOWN = "measured", "timed", "probed", "guessed", "unknown"
WHOLE, LIKE = "whole", "like"
SOURCES = {
    MEASURED: "measured in an earlier run",
    TIMED: "timed in an earlier run",
    PROBED: "probed now",
    WHOLE: "probed now with the layers whose outputs are stored: at most",
    LIKE: "measured in an earlier run of the template over the table",
    GUESSED: "guessed by the number of weights",
    UNKNOWN: "unknown: nobody has timed it yet",
}


@dataclass(frozen=True)
class Program:
    """What is compiled for configs, and what it costs: seconds for a row to train and for one to
    evaluate, for compilation, to read a state and to store one. Where nobody knows how long a row
    takes, `row` is None.

    `spread` is the standard deviation of its visits, as a part of their mean. Of its configs
    `lanes` may be trained side by side, which saves `gained` of each second; None where that is not
    known. `shards` take turns in the memory of a trainer that has no room for all of it: the layers
    of each, and bytes.
    """

    name: str
    configs: tuple[int, ...]
    backend: str
    batch_size: int
    source: str
    row: float | None = None
    evaluated_row: float = 0.0
    compile: float = 0.0
    hop: float = 0.0
    store: float = 0.0
    form: str | None = None
    state_bytes: int | None = None
    spread: float | None = None
    lanes: int | None = None
    gained: float | None = None
    shards: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Work:
    """What there is to do, whoever does it: `rows` are those of a visit, by mst_key;
    `evaluated_rows` those of a visit that evaluates. Configs that do not visit all segments have
    `own` ones; those that average have so many `copies`. A search may end `sooner`."""

    epochs: int
    evaluate_epochs: tuple[int, ...]
    segments: tuple[int, ...]
    rows: Mapping[int, int]
    evaluated_rows: float
    schedule: str
    commit_seconds: float = 0.0
    own: Mapping[int, tuple[int, ...]] = {}
    sooner: bool = False
    copies: int = 0


@dataclass(frozen=True)
class Strategy:
    """A way to do it: so many workers of so many threads. `seconds` is None where that cannot be
    told.
    """

    name: str
    workers: int
    threads: int
    seconds: float | None = None

    @property
    def stays(self) -> bool:
        """Whether every worker may serve all segments."""
        return self.name not in (MOP, *AVERAGES)


@dataclass(frozen=True)
class Data:
    """Sizes: rows to train on; all rows, and their bytes in a trainer; the `room` for rows that
    each trainer has.
    """

    training_rows: int
    rows: int
    bytes: int
    room: int
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class StoredLayer:
    """What a frozen layer gives, as it is stored for configs: the bytes that it takes for all rows,
    and the seconds that all workers together are expected to take to compute it; none where an
    earlier run has left it."""

    layer: str
    configs: tuple[int, ...]
    rows: int
    bytes: int
    seconds: float
    kept: bool = False


@dataclass(frozen=True)
class RunPlan:
    """A run as it is expected to go. `begun` are the seconds from its first line in the log to this
    estimate, and `beside` those that are neither begun by then nor known of any visit. `error` is a
    part of all seconds. Workers have `compiled` programs before."""

    work: Work
    programs: tuple[Program, ...]
    chosen: Strategy
    others: tuple[Strategy, ...]
    data: Data
    begun: float = 0.0
    beside: float = 0.0
    error: float | None = None
    compiled: Mapping[int, tuple[str, ...]] = {}
    stored: tuple[StoredLayer, ...] = ()

    @property
    def seconds(self) -> float | None:
        """How long the run is expected to take in all."""
        known = self.chosen.seconds
        return None if known is None else self.begun + self.storing + known + self.beside

    @property
    def storing(self) -> float:
        """Seconds that it takes to store what frozen layers give."""
        return sum(each.seconds for each in self.stored)

    @property
    def limits(self) -> bool:
        """Whether `seconds` are an upper bound."""
        return self.work.sooner or any(program.source == WHOLE for program in self.programs)

    @property
    def visit_seconds(self) -> dict[int, float]:
        """How long visits of each config are expected to take, as far as that is known."""
        known = ((program.row, program.configs) for program in self.programs)
        return {
            key: row * self.work.rows[key]
            for row, configs in known
            if row is not None
            for key in configs
        }

    def to_json(self) -> dict[str, Any]:
        """What the log keeps."""
        return dict(asdict(self))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunPlan:
        """What `to_json` gave; raises TypeError, KeyError, ValueError or AttributeError for
        anything else.
        """
        work = _record(Work, values["work"])
        rows = {int(key): int(count) for key, count in work.rows.items()}
        own = {int(key): tuple(segments) for key, segments in work.own.items()}
        if work.copies > len(work.segments):
            raise ValueError(
                f"{work.copies} copies of a configuration train on {len(work.segments)} segments"
            )
        return cls(
            work=replace(work, rows=rows, own=own),
            programs=tuple(_record(Program, each) for each in values["programs"]),
            chosen=_record(Strategy, values["chosen"]),
            others=tuple(_record(Strategy, each) for each in values["others"]),
            data=_record(Data, values["data"]),
            begun=float(values["begun"]),
            beside=float(values["beside"]),
            error=values["error"],
            compiled={int(worker): tuple(names) for worker, names in values["compiled"].items()},
            stored=tuple(_record(StoredLayer, each) for each in values.get("stored", ())),
        )


def _record(kind: Any, values: Mapping[str, Any]) -> Any:
    known = {each.name: values[each.name] for each in fields(kind) if each.name in values}
    return kind(
        **{name: tuple(each) if isinstance(each, list) else each for name, each in known.items()}
    )


class Settled(NamedTuple):
    """What is the same for all strategies of a run: its work, the `orders` that it repeats, and
    what workers have compiled."""

    work: Work
    orders: Mapping[tuple[int, int], Sequence[int]] = {}
    compiled: Mapping[int, Collection[str]] = {}


def case(settled: Settled, programs: Sequence[Program], strategy: Strategy) -> Case | None:
    """The run by a strategy, to be simulated; None where it is not known how long something takes,
    or which orders are repeated."""
    work = settled.work
    if work.schedule == REPLAY and not settled.orders:
        return None
    costs = {
        key: Cost(
            program.name,
            program.row * work.rows[key],
            program.evaluated_row * work.evaluated_rows,
            program.hop,
            program.store,
            program.compile,
        )
        for program in programs
        if program.row is not None
        for key in program.configs
    }
    if len(costs) < len(work.rows) or not costs:
        return None
    shared = assign_segments(work.segments, range(strategy.workers))
    own = {key: frozenset(segments) for key, segments in work.own.items()}
    copies = divide_segments(work.segments, work.copies) if work.copies else ()
    plan = Plan(work.epochs, work.segments, shared, frozenset(work.evaluate_epochs), copies, own)
    compiled = {
        worker: names for worker, names in settled.compiled.items() if worker < strategy.workers
    }
    certain = 1 if work.sooner else sys.maxsize
    return Case(
        plan,
        costs,
        work.schedule,
        strategy.stays,
        settled.orders,
        compiled,
        work.commit_seconds,
        certain,
    )


def outcome(settled: Settled, programs: Sequence[Program], strategy: Strategy) -> Outcome | None:
    """What a strategy is expected to come to."""
    found = case(settled, programs, strategy)
    return simulation.foreseen(found) if found else None


def priced(settled: Settled, programs: Sequence[Program], strategy: Strategy) -> Strategy:
    """The strategy with the seconds that it is expected to take."""
    found = outcome(settled, programs, strategy)
    return replace(strategy, seconds=found.seconds if found else None)


def spent(plan: RunPlan, found: Outcome, tables: int) -> Spent:
    """What a run is expected to use that has so many state tables for each config, all as large as
    they become.
    """
    # The work of a long run is told by its first epochs, and may come to more than its workers
    # have.
    seconds = (1 - found.idle) * found.seconds * len(
        found.work
    ) + plan.chosen.workers * plan.storing
    sizes = sum((program.state_bytes or 0) * len(program.configs) for program in plan.programs)
    return Spent(
        seconds * plan.chosen.threads,
        seconds * bool(plan.data.gpus),
        tables * sizes * found.seconds,
    )


def cheapest(usual: Strategy, others: Sequence[Strategy]) -> Strategy:
    """The strategy that is expected to be done first: the usual one, unless another one promises
    much more.

    >>> mop, task = Strategy(MOP, 3, 1, 7.0), Strategy(TASK, 3, 1, 9.0)
    >>> (cheapest(task, [mop]).name, cheapest(mop, [task]).name,
    ...  cheapest(replace(task, seconds=None), [mop]).name)
    ('mop', 'mop', 'task')
    """
    known = [(each.seconds, each) for each in others if each.seconds is not None]
    seconds, best = min(known, key=lambda pair: pair[0], default=(usual.seconds, usual))
    if seconds is None or usual.seconds is None or seconds > WORTH * usual.seconds:
        return usual
    return best


def improvable(settled: Settled, programs: Sequence[Program], usual: Strategy) -> bool:
    """Whether another strategy for as many workers might promise much more."""
    found = case(settled, programs, usual)
    return (
        found is not None
        and usual.seconds is not None
        and simulation.least(found) <= WORTH * usual.seconds
    )


def bound(found: Case) -> str:
    """What keeps a run from being over sooner."""
    longest, shared = simulation.longest(found), simulation.shared(found)
    if longest > shared:
        visits = {
            key: cost.train * len(found.plan.segments_of(key)) for key, cost in found.costs.items()
        }
        return f"the longest configuration, mst_key={max(visits, key=lambda key: visits[key])}"
    return "the work of all configurations together"
