"""The tree of a run's plan for EXPLAIN, and of what happened if the run has begun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.platform.state_tables import HOPPING
from cerebro_plpy.records import dataclass, field
from cerebro_plpy.run.planning.explain_output import Money, Node, Quantity, StrategyList
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

Values = dict[str, object]


@dataclass(frozen=True)
class ActualRun:
    """The course of a run, from its log."""

    status: str
    seconds: float | None  # None unless it has ended
    idle_share: float  # of the time of its workers
    programs: tuple[Program, ...]  # with measured costs
    alternatives: tuple[Strategy, ...] = ()  # strategies with durations by these costs
    sums: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by program
    changes: tuple[str, ...] = ()  # of its strategy
    money: float | None = None  # None without prices


class PlanContext(NamedTuple):
    """Everything other than the plan that its tree depends on."""

    orders: Mapping[tuple[int, int], Sequence[int]] = {}  # orders that a replay repeats
    prices: Prices | None = None


def build_tree(plan: RunPlan, context: PlanContext, actual: ActualRun | None = None) -> Node:
    """Return the tree of a plan.

    Args:
        actual: the run, if it has begun.
    """
    inputs = PlanInputs(plan.work, context.orders, plan.compiled)
    outcome = run_plan.estimate_outcome(inputs, plan.programs, plan.strategy)
    return _TreeBuilder(plan, inputs, outcome, context.prices, actual).build()


@dataclass(frozen=True)
class _TreeBuilder:
    """Builds the nodes of one plan."""

    plan: RunPlan
    inputs: PlanInputs
    outcome: Outcome | None  # of the simulation; None if times are unknown
    prices: Prices | None
    actual: ActualRun | None

    def build(self) -> Node:
        plan = self.plan
        attributes: Values = {
            "strategy": plan.strategy.name,
            "configs": len(plan.work.rows),
            "epochs": plan.work.epochs,
        }
        if self.actual and self.actual.seconds is not None:
            attributes["actual"] = Quantity(self.actual.seconds)
        if plan.seconds is None:
            attributes["expected"] = "unknown"
        else:
            name = "at most" if plan.is_upper_bound else "expected"
            attributes[name] = Quantity(plan.seconds)
        children = [self._build_workers(), self._build_states()]
        children += map(_build_layer, plan.stored_layers)
        children += map(self._build_program, plan.programs)
        return Node("Fit", attributes, self._describe_run(), children)

    def _describe_run(self) -> Values:
        plan = self.plan
        values: Values = {
            "Execution": run_plan.STRATEGY_TEXTS[plan.strategy.name],
            "Compared": StrategyList((plan.strategy, *plan.alternatives)),
        }
        if plan.seconds is not None and plan.error is not None:
            values["Error"] = Quantity(plan.error * plan.seconds)
        case = run_plan.make_case(self.inputs, plan.programs, plan.strategy)
        if case is not None:
            values["Lower Bound"] = Quantity(run_duration.lower_bound(case))
            values["Bound By"] = run_plan.describe_bottleneck(case)
        if plan.startup_seconds:
            values["Start-up"] = Quantity(plan.startup_seconds)
        if plan.extra_seconds:
            values["Correction"] = Quantity(plan.extra_seconds)
        if self.actual:
            values.update(_describe_actual_run(plan, self.actual))
        if self.prices and self.outcome:
            usage = run_plan.estimate_usage(plan, self.outcome, self._state_table_count)
            name = "Most Cost" if plan.is_upper_bound else "Expected Cost"
            values[name] = Money(self.prices.cost_of(usage))
        if self.actual and self.actual.money is not None:
            values["Actual Cost"] = Money(self.actual.money)
        return values

    def _build_workers(self) -> Node:
        plan = self.plan
        data = plan.data
        strategy = plan.strategy
        segments = len(plan.work.segments)
        share: float = 1  # of the rows that a trainer needs
        if not strategy.is_stationary:
            share = -(-segments // strategy.workers) / segments
        cached_bytes = min(data.capacity_bytes, int(data.bytes * share))
        program_bytes = [0]
        for program in plan.programs:
            program_bytes += [int(shard["memory_bytes"]) for shard in program.shards]
            if not program.shards:
                program_bytes.append(HOPPING * (program.state_bytes or 0))
        trainer_bytes = host_resources.TRAINER_BYTES + cached_bytes + max(program_bytes)
        validation_rows = data.rows - data.training_rows
        properties: Values = {
            "Segments": segments,
            "Rows": f"{data.training_rows} to train on, {validation_rows} to validate",
            "Rows Kept": Quantity(cached_bytes, "B"),
            "Trainer Memory": Quantity(trainer_bytes, "B"),
        }
        if data.bytes * share > data.capacity_bytes:
            properties["Rows Read Again"] = "in each visit: a trainer has no room for them"
        if self.outcome:
            properties["Idle"] = Quantity(100 * self.outcome.idle_share, "%")
        if self.actual:
            properties["Actual Idle"] = Quantity(100 * self.actual.idle_share, "%")
        attributes = {
            "workers": strategy.workers,
            "threads": strategy.threads,
            "gpus": len(data.gpus),
        }
        return Node("Workers", attributes, properties)

    def _build_states(self) -> Node:
        epochs = self.plan.work.epochs
        sizes = [
            program.state_bytes or 0 for program in self.plan.programs for _ in program.configs
        ]
        attributes: Values = {}
        properties: Values = {}
        if self.outcome:
            attributes["hops"] = self.outcome.hops
            attributes["stores"] = self.outcome.stores
        if self.outcome and any(sizes):
            mean_size = sum(sizes) / len(sizes)
            hops = self.outcome.hops / epochs
            stores = self.outcome.stores / epochs
            tables = self._state_table_count + 1
            properties["Moved per Epoch"] = Quantity((hops + stores) * mean_size, "B")
            properties["WAL per Epoch"] = Quantity(stores * mean_size, "B")
            properties["Disk at the Peak"] = Quantity(tables * sum(sizes), "B")
        if self.actual:
            sums = self.actual.sums.values()
            properties["Actual Hops"] = int(_add(sums, "hops"))
            properties["Actual Stores"] = int(_add(sums, "stores"))
            properties["Actual Bytes Stored"] = Quantity(_add(sums, "bytes"), "B")
            properties["Actual Store Time"] = Quantity(_add(sums, "storing"))
        return Node("States", attributes, properties)

    @property
    def _state_table_count(self) -> int:
        """The number of tables that hold the states of each configuration in turn."""
        if self.plan.strategy.name in AVERAGES:
            return len(self.plan.work.segments) + 1
        return HOPPING

    def _build_program(self, program: Program) -> Node:
        work = self.plan.work
        rows = sum(work.rows[mst_key] for mst_key in program.configs)
        visit_rows = rows / max(1, len(program.configs))
        properties: Values = {"Configurations": _format_keys(program.configs)}
        if program.lanes is not None:
            properties["Fused"] = _format_fusion(program.lanes, program.lane_gain)
        if program.form:
            properties["Form"] = program.form
        if program.row_seconds is not None:
            evaluation_seconds = program.evaluation_row_seconds * work.evaluated_rows
            properties["Visit Time"] = Quantity(program.row_seconds * visit_rows)
            properties["Evaluation Time"] = Quantity(evaluation_seconds)
            properties["Hop Time"] = Quantity(program.hop + program.store)
            properties["Compile Time"] = Quantity(program.compile)
        properties["Known"] = SOURCE_TEXTS[program.source]
        if program.state_bytes is not None:
            properties["State"] = Quantity(program.state_bytes, "B")
        if self.actual:
            properties.update(_describe_actual_program(self.actual, program, visit_rows))
        attributes = {
            "configs": len(program.configs),
            "backend": program.backend,
            "batch": program.batch_size,
        }
        return Node("Program", attributes, properties, [*map(_build_shard, program.shards)])


def _describe_actual_run(plan: RunPlan, actual: ActualRun) -> Values:
    values: Values = {"Status": actual.status}
    if actual.changes:
        values["Changed"] = "; ".join(actual.changes)
    if actual.seconds is not None and plan.seconds:
        values["Estimate Off By"] = Quantity(100 * (plan.seconds / actual.seconds - 1), "%")
    if actual.alternatives:
        alternatives = StrategyList(actual.alternatives)
        values["By Measured Times"] = alternatives
        values["Would Have Been Best"] = alternatives.best
    return values


def _describe_actual_program(actual: ActualRun, program: Program, visit_rows: float) -> Values:
    sums = actual.sums.get(program.name)
    measured = next((one for one in actual.programs if one.name == program.name), None)
    if measured is None or measured.row_seconds is None or sums is None:
        return {}
    values: Values = {"Actual Visits": int(sums["visits"])}
    if sums["fused"]:
        values["Actual Fused"] = f"{int(sums['fused'])} of these visits"
    values["Actual Visit Time"] = Quantity(measured.row_seconds * visit_rows)
    if program.row_seconds:
        deviation = program.row_seconds / measured.row_seconds - 1
        values["Estimate Off By"] = Quantity(100 * deviation, "%")
    values["Actual Hop Time"] = Quantity(measured.hop + measured.store)
    values["Actual Compile Time"] = Quantity(sums["compiling"])
    return values


def _build_layer(layer: StoredLayer) -> Node:
    """Return the node of a layer whose outputs are computed once."""
    properties = {
        "Configurations": _format_keys(layer.configs),
        "Rows": layer.rows,
        "Stored": Quantity(layer.bytes, "B"),
        "Time": Quantity(layer.seconds),
        "From": "an earlier run" if layer.exists else "this run",
    }
    return Node("Features", {"layer": layer.layer, "configs": len(layer.configs)}, properties)


def _build_shard(shard: Mapping[str, Any]) -> Node:
    """Return the node of a part of a network that shares memory in turn with other parts."""
    layers = shard["layers"]
    names = layers[0] if layers[0] == layers[-1] else f"{layers[0]} to {layers[-1]}"
    properties = {
        "Layers": names,
        "State": Quantity(shard["state_bytes"], "B"),
        "Memory": Quantity(shard["memory_bytes"], "B"),
    }
    return Node("Shard", {"layers": len(layers)}, properties)


def _add(sums: Iterable[Mapping[str, float]], name: str) -> float:
    return sum(program_sums.get(name, 0.0) for program_sums in sums)


def _format_fusion(lanes: int, gain: float | None) -> str:
    """Return how many configurations are trained at once.

    >>> _format_fusion(1, None), _format_fusion(8, 0.5), _format_fusion(8, -2.0)
    ('no', '8 at a time', 'no: one by one is faster')
    >>> _format_fusion(8, None)
    '8 at a time, if they are found to be faster'
    """
    if lanes < 2:
        return "no"
    if gain is None:
        return f"{lanes} at a time, if they are found to be faster"
    return f"{lanes} at a time" if gain > 0 else "no: one by one is faster"


def _format_keys(mst_keys: Sequence[int]) -> str:
    """Return the numbers of configurations as ranges.

    >>> _format_keys((1, 2, 3, 5)), _format_keys((4,))
    ('1-3, 5', '4')
    """
    ranges: list[list[int]] = []
    for mst_key in sorted(mst_keys):
        if ranges and mst_key == ranges[-1][-1] + 1:
            ranges[-1][1:] = [mst_key]
        else:
            ranges.append([mst_key])
    return ", ".join("-".join(map(str, bounds)) for bounds in ranges)
