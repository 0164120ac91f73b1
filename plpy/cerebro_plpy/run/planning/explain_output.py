"""A plan as people and programs read it: a tree in the form of PostgreSQL's EXPLAIN, as text or as
JSON.

Where a run has gone by its plan, each node has what happened beside what was expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.platform.state_tables import HOPPING
from cerebro_plpy.records import asdict, dataclass, field
from cerebro_plpy.scheduling.planning import run_duration, run_plan
from cerebro_plpy.scheduling.planning.run_plan import (
    AVERAGES,
    SOURCE_TEXTS,
    PlanInputs,
    Program,
    RunPlan,
    StoredLayer,
    Strategy,
)
from cerebro_plpy.scheduling.planning.simulation import Outcome
from cerebro_plpy.scheduling.quota.cost_limits import Prices
from cerebro_plpy.trainer_client.process import host_resources

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
INDENT = 6
DIGITS = 3


class Node(NamedTuple):
    """A node of the tree: what stands beside its name, what stands below it, and the nodes that are
    part of it.
    """

    name: str
    attributes: Mapping[str, object]
    properties: Mapping[str, object]
    children: Sequence[Node] = ()


class Quantity(NamedTuple):
    """A number, and what it counts: it is shown in the unit that suits it, and is a plain number in
    JSON.
    """

    value: float
    unit: str = "s"

    def __str__(self) -> str:
        return (
            format_bytes(self.value)
            if self.unit == "B"
            else f"{format_number(self.value)} {self.unit}"
        )


class Money(NamedTuple):
    """A sum of money, in the unit of the prices."""

    value: float

    def __str__(self) -> str:
        return format_number(self.value)


class StrategyList(NamedTuple):
    """Strategies beside one another; in JSON each is an object."""

    strategies: Sequence[Strategy]

    def __str__(self) -> str:
        return ", ".join(map(_strategy, self.strategies))

    @property
    def best(self) -> str:
        """The one with the least seconds."""
        known = [each for each in self.strategies if each.seconds is not None]
        return _strategy(min(known, key=lambda each: each.seconds or 0.0)) if known else "unknown"


@dataclass(frozen=True)
class ActualRun:
    """What a run came to: `seconds` in all, where it has ended; the part in which its workers were
    `idle`; its programs with what was measured of them, and `sums` of each by its name; what
    `others` would have taken by that; which `changes` of its strategy there were; and what it has
    cost in `money`, where something has a price."""

    status: str
    seconds: float | None
    idle_share: float
    programs: tuple[Program, ...]
    alternatives: tuple[Strategy, ...] = ()
    sums: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    money: float | None = None


def format_tree(tree: Node, form: str) -> list[str]:
    """The lines of a tree, or the one text that is its JSON."""
    return (
        [json.dumps([{"Plan": _plain(tree)}], indent=2)] if form == JSON else list(_lines(tree, 0))
    )


class PlanContext(NamedTuple):
    """What a plan is seen by: the orders that a replay repeats, and the prices, where there are
    any.
    """

    orders: Mapping[tuple[int, int], Sequence[int]] = {}
    prices: Prices | None = None


def build_tree(plan: RunPlan, known: PlanContext, happened: ActualRun | None = None) -> Node:
    """The tree of a plan."""
    settled = PlanInputs(plan.work, known.orders, plan.compiled)
    outcome = run_plan.estimate_outcome(settled, plan.programs, plan.strategy)
    parts = [_workers(plan, outcome, happened), _states(plan, outcome, happened)]
    parts += [
        *map(_stored, plan.stored_layers),
        *(_program(plan, each, happened) for each in plan.programs),
    ]
    head = {
        "strategy": plan.strategy.name,
        "configs": len(plan.work.rows),
        "epochs": plan.work.epochs,
    }
    if happened and happened.seconds is not None:
        head["actual"] = Quantity(happened.seconds)
    facts = {
        **dict(_run(plan, settled, happened)),
        **dict(_money(plan, outcome, known.prices, happened)),
    }
    return Node("Fit", {**head, **_expected(plan)}, facts, parts)


def _expected(plan: RunPlan) -> dict[str, object]:
    if plan.seconds is None:
        return {"expected": "unknown"}
    return {"at most" if plan.is_upper_bound else "expected": Quantity(plan.seconds)}


def _money(
    plan: RunPlan, outcome: Outcome | None, prices: Prices | None, happened: ActualRun | None
) -> Iterator[tuple[str, object]]:
    if prices and outcome:
        spent = run_plan.estimate_usage(plan, outcome, _tables(plan))
        yield "Most Cost" if plan.is_upper_bound else "Expected Cost", Money(prices.cost_of(spent))
    if happened and happened.money is not None:
        yield "Actual Cost", Money(happened.money)


def _stored(each: StoredLayer) -> Node:
    """A layer whose outputs are computed once."""
    head = {"layer": each.layer, "configs": len(each.configs)}
    facts = {
        "Configurations": _keys(each.configs),
        "Rows": each.rows,
        "Stored": Quantity(each.bytes, "B"),
        "Time": Quantity(each.seconds),
        "From": "an earlier run" if each.exists else "this run",
    }
    return Node("Features", head, facts)


def _run(
    plan: RunPlan, settled: PlanInputs, happened: ActualRun | None
) -> Iterator[tuple[str, object]]:
    yield "Execution", run_plan.STRATEGY_TEXTS[plan.strategy.name]
    yield "Compared", StrategyList((plan.strategy, *plan.alternatives))
    if plan.seconds is not None and plan.error is not None:
        yield "Error", Quantity(plan.error * plan.seconds)
    found = run_plan.make_case(settled, plan.programs, plan.strategy)
    if found is not None:
        yield "Lower Bound", Quantity(run_duration.lower_bound(found))
        yield "Bound By", run_plan.describe_bottleneck(found)
    if plan.startup_seconds:
        yield "Start-up", Quantity(plan.startup_seconds)
    if plan.extra_seconds:
        yield "Correction", Quantity(plan.extra_seconds)
    if happened:
        yield "Status", happened.status
        if happened.changes:
            yield "Changed", "; ".join(happened.changes)
        if happened.seconds is not None and plan.seconds:
            yield "Estimate Off By", Quantity(100 * (plan.seconds / happened.seconds - 1), "%")
        if happened.alternatives:
            yield "By Measured Times", StrategyList(happened.alternatives)
            yield "Would Have Been Best", StrategyList(happened.alternatives).best


def _strategy(each: Strategy) -> str:
    took = "unknown" if each.seconds is None else str(Quantity(each.seconds))
    return f"{each.name} {took} ({each.workers} x {each.threads})"


def _workers(plan: RunPlan, outcome: Outcome | None, happened: ActualRun | None) -> Node:
    data, chosen = plan.data, plan.strategy
    shared = (
        1
        if chosen.is_stationary
        else -(-len(plan.work.segments) // chosen.workers) / len(plan.work.segments)
    )
    kept = min(data.capacity_bytes, int(data.bytes * shared))
    states = max(
        (HOPPING * (each.state_bytes or 0) for each in plan.programs if not each.shards), default=0
    )
    shards = [int(shard["memory_bytes"]) for each in plan.programs for shard in each.shards]
    facts: dict[str, object] = {
        "Segments": len(plan.work.segments),
        "Rows": f"{data.training_rows} to train on, {data.rows - data.training_rows} to validate",
        "Rows Kept": Quantity(kept, "B"),
        "Trainer Memory": Quantity(
            host_resources.TRAINER_BYTES + kept + max([states, *shards]), "B"
        ),
    }
    if data.bytes * shared > data.capacity_bytes:
        facts["Rows Read Again"] = "in each visit: a trainer has no room for them"
    if outcome:
        facts["Idle"] = Quantity(100 * outcome.idle_share, "%")
    if happened:
        facts["Actual Idle"] = Quantity(100 * happened.idle_share, "%")
    return Node(
        "Workers",
        {"workers": chosen.workers, "threads": chosen.threads, "gpus": len(data.gpus)},
        facts,
    )


def _states(plan: RunPlan, outcome: Outcome | None, happened: ActualRun | None) -> Node:
    sizes = {key: each.state_bytes or 0 for each in plan.programs for key in each.configs}
    mean, facts = sum(sizes.values()) / max(1, len(sizes)), dict[str, object]()
    if outcome and any(sizes.values()):
        hops, stores = (count / plan.work.epochs for count in (outcome.hops, outcome.stores))
        facts["Moved per Epoch"] = Quantity((hops + stores) * mean, "B")
        facts["WAL per Epoch"] = Quantity(stores * mean, "B")
        facts["Disk at the Peak"] = Quantity((_tables(plan) + 1) * sum(sizes.values()), "B")
    head: dict[str, object] = {}
    if outcome:
        head = {"hops": outcome.hops, "stores": outcome.stores}
    if happened:
        facts["Actual Hops"] = int(_sum(happened, "hops"))
        facts["Actual Stores"] = int(_sum(happened, "stores"))
        facts["Actual Bytes Stored"] = Quantity(_sum(happened, "bytes"), "B")
        facts["Actual Store Time"] = Quantity(_sum(happened, "storing"))
    return Node("States", head, facts)


def _tables(plan: RunPlan) -> int:
    """How many tables hold the states of each configuration in turn."""
    return len(plan.work.segments) + 1 if plan.strategy.name in AVERAGES else HOPPING


def _sum(happened: ActualRun, name: str) -> float:
    return sum(sums.get(name, 0.0) for sums in happened.sums.values())


def _program(plan: RunPlan, program: Program, happened: ActualRun | None) -> Node:
    rows = [plan.work.rows[key] for key in program.configs]
    facts: dict[str, object] = {"Configurations": _keys(program.configs)}
    if program.lanes is not None:
        facts["Fused"] = _fused(program.lanes, program.lane_gain)
    if program.form:
        facts["Form"] = program.form
    if program.row_seconds is not None:
        facts["Visit Time"] = Quantity(program.row_seconds * sum(rows) / len(rows))
        facts["Evaluation Time"] = Quantity(
            program.evaluation_row_seconds * plan.work.evaluated_rows
        )
        facts["Hop Time"] = Quantity(program.hop + program.store)
        facts["Compile Time"] = Quantity(program.compile)
    facts["Known"] = SOURCE_TEXTS[program.source]
    if program.state_bytes is not None:
        facts["State"] = Quantity(program.state_bytes, "B")
    if happened:
        facts |= _actual(happened, program, sum(rows) / len(rows))
    head = {
        "configs": len(program.configs),
        "backend": program.backend,
        "batch": program.batch_size,
    }
    return Node("Program", head, facts, [_shard(each) for each in program.shards])


def _fused(lanes: int, gained: float | None) -> str:
    """How many configurations are trained side by side.

    >>> _fused(1, None), _fused(8, 0.5), _fused(8, -2.0), _fused(8, None)
    ('no', '8 at a time', 'no: one by one is faster', '8 at a time, if they are found to be faster')
    """
    if lanes < 2:
        return "no"
    if gained is None:
        return f"{lanes} at a time, if they are found to be faster"
    return f"{lanes} at a time" if gained > 0 else "no: one by one is faster"


def _shard(shard: Mapping[str, Any]) -> Node:
    """A part of a network that takes turns in memory."""
    first, last = shard["layers"][0], shard["layers"][-1]
    facts = {
        "Layers": first if first == last else f"{first} to {last}",
        "State": Quantity(shard["state_bytes"], "B"),
        "Memory": Quantity(shard["memory_bytes"], "B"),
    }
    return Node("Shard", {"layers": len(shard["layers"])}, facts)


def _actual(happened: ActualRun, program: Program, rows: float) -> Iterator[tuple[str, object]]:
    found = next((each for each in happened.programs if each.name == program.name), None)
    sums = happened.sums.get(program.name)
    if found is None or found.row_seconds is None or sums is None:
        return
    yield "Actual Visits", int(sums["visits"])
    if sums["fused"]:
        yield "Actual Fused", f"{int(sums['fused'])} of these visits"
    yield "Actual Visit Time", Quantity(found.row_seconds * rows)
    if program.row_seconds:
        yield "Estimate Off By", Quantity(100 * (program.row_seconds / found.row_seconds - 1), "%")
    yield "Actual Hop Time", Quantity(found.hop + found.store)
    yield "Actual Compile Time", Quantity(sums["compiling"])


def _keys(keys: Sequence[int]) -> str:
    """The numbers of configurations, as ranges.

    >>> _keys((1, 2, 3, 5)), _keys((4,))
    ('1-3, 5', '4')
    """
    ranges: list[list[int]] = []
    for key in sorted(keys):
        if ranges and key == ranges[-1][-1] + 1:
            ranges[-1][1:] = [key]
        else:
            ranges.append([key])
    return ", ".join("-".join(map(str, each)) for each in ranges)


def _lines(node: Node, depth: int) -> Iterator[str]:
    beside = " ".join(f"{name}={value}" for name, value in node.attributes.items())
    lead = " " * (INDENT * depth - 4) + "->  " if depth else ""
    yield f"{lead}{node.name}  ({beside})" if beside else f"{lead}{node.name}"
    below = " " * (INDENT * depth + 2)
    yield from (f"{below}{name}: {value}" for name, value in node.properties.items())
    for part in node.children:
        yield from _lines(part, depth + 1)


def _plain(node: Node) -> dict[str, Any]:
    named = {name.capitalize(): value for name, value in node.attributes.items()}
    values = {name: _value(value) for name, value in {**named, **node.properties}.items()}
    parts = {"Plans": [_plain(part) for part in node.children]} if node.children else {}
    return {"Node Type": node.name, **values, **parts}


def _value(value: object) -> object:
    if isinstance(value, (Money, Quantity)):
        return value.value
    return [asdict(each) for each in value.strategies] if isinstance(value, StrategyList) else value


def format_number(value: float) -> str:
    """A number with as many digits as tell anything.

    >>> format_number(1234.56), format_number(12.345), format_number(0.0123456), format_number(0.0)
    ('1235', '12.3', '0.0123', '0')
    """
    return f"{value:.0f}" if abs(value) >= 10**DIGITS else f"{value:.{DIGITS}g}"


def format_bytes(size: float) -> str:
    """So many bytes.

    >>> format_bytes(512), format_bytes(1_500), format_bytes(2_345_678_901)
    ('512 B', '1.5 kB', '2.35 GB')
    """
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= factor:
            return f"{format_number(size / factor)} {unit}"
    return f"{size:.0f} B"
