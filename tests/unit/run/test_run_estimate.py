"""The estimate of a run follows from the durations of similar runs, without losing measurements."""

from __future__ import annotations

import json
import math
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.records import replace
from cerebro_plpy.run.log.program_costs import EvaluationCosts, LoggedCosts, VisitCosts, apply_costs
from cerebro_plpy.run.planning.explain_output import JSON, TEXT, Money, format_tree
from cerebro_plpy.run.planning.explain_tree import PlanContext, build_tree
from cerebro_plpy.run.planning.run_estimate import correct_plan
from cerebro_plpy.run.planning.workload import MALFORMED, PriorRun
from cerebro_plpy.scheduling.planning.run_plan import (
    MOP,
    TASK,
    UNKNOWN,
    WIDE,
    Data,
    PlanInputs,
    Program,
    RunPlan,
    StoredLayer,
    Strategy,
    Work,
    estimate_strategy,
)
from cerebro_plpy.scheduling.quota.cost_limits import HOUR, Prices

SECONDS = st.floats(0.001, 100.0)
ROW = st.one_of(st.none(), st.floats(1e-6, 1.0))
COMPILED: list[dict[int, tuple[str, ...]]] = [{}, {0: ("a/8",)}, {0: ("a/8",), 1: ("a/8", "b/8")}]


SHARDS = (
    {"layers": ["first", "middle", "third"], "state_bytes": 3 * 10**6, "memory_bytes": 7 * 10**6},
    {"layers": ["out"], "state_bytes": 10**6, "memory_bytes": 2 * 10**6},
)


@st.composite
def plans(draw: st.DrawFn) -> RunPlan:
    """Draw a plan over two programs, one of which may have no timings."""
    configs = draw(st.integers(2, 5))
    work = Work(
        epochs=draw(st.integers(1, 20)),
        evaluate_epochs=draw(st.sampled_from([(), (1,)])),
        segments=(0, 1),
        rows={key: draw(st.integers(1, 1000)) for key in range(1, configs + 1)},
        evaluated_rows=draw(st.floats(0, 1000)),
        schedule="longest",
        may_end_early=draw(st.booleans()),
    )
    programs = tuple(
        Program(
            name,
            keys,
            "jax",
            8,
            UNKNOWN,
            draw(ROW),
            compile=draw(SECONDS),
            state_bytes=draw(st.integers(0, 10**9)),
            shards=draw(st.sampled_from([(), SHARDS])),
        )
        for name, keys in (("a/8", (1,)), ("b/8", tuple(range(2, configs + 1))))
    )
    way = Strategy(
        draw(st.sampled_from([MOP, TASK, WIDE])), draw(st.integers(1, 2)), draw(st.integers(1, 8))
    )
    compiled: dict[int, tuple[str, ...]] = draw(st.sampled_from(COMPILED))
    chosen = estimate_strategy(PlanInputs(work, {}, compiled), programs, way)
    stored = draw(st.sampled_from([(), (StoredLayer("front", (1, 2), 30, 720, draw(SECONDS)),)]))
    others = (Strategy(MOP, 1, 1),)
    return RunPlan(
        work,
        programs,
        chosen,
        others,
        Data(10, 20, 30, 40),
        compiled=compiled,
        stored_layers=stored,
    )


@given(plans())
def test_a_plan_is_read_from_its_json_unchanged(plan: RunPlan) -> None:
    assert RunPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@given(plans(), st.integers(0, 9))
def test_a_configuration_has_no_more_copies_than_there_are_segments(
    plan: RunPlan, copies: int
) -> None:
    logged = replace(plan, work=replace(plan.work, copies=copies))
    if copies <= len(plan.work.segments):
        assert RunPlan.from_json(logged.to_json()) == logged
    else:
        with pytest.raises(ValueError, match=f"{copies} copies of a configuration"):
            RunPlan.from_json(logged.to_json())


@pytest.mark.parametrize("broken", [{}, {"work": 1}, {"programs": None}, {"chosen": {"name": []}}])
def test_json_that_is_not_a_plan_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(MALFORMED):
        RunPlan.from_json(broken)


@given(plans(), st.lists(SECONDS, min_size=1, max_size=5), SECONDS)
def test_a_run_is_expected_to_take_as_long_as_equal_runs(
    plan: RunPlan, took: list[float], startup_seconds: float
) -> None:
    """The median of several runs counts, whatever the simulation estimates."""
    earlier = [
        PriorRun(
            1,
            replace(plan, startup_seconds=startup_seconds),
            startup_seconds + plan.storing_seconds + each,
        )
        for each in took
    ]
    found = correct_plan(replace(plan, startup_seconds=1.0), earlier)
    if plan.strategy.seconds is None:
        assert found.seconds is None
        return
    assert found.seconds is not None
    assert math.isclose(found.seconds, 1.0 + plan.storing_seconds + median_low(took), rel_tol=1e-6)
    assert found.error is not None
    assert found.error >= 0


@given(plans())
def test_a_plan_has_the_same_nodes_as_text_and_as_json(plan: RunPlan) -> None:
    found = build_tree(plan, PlanContext())
    (document,) = format_tree(found, JSON)
    (document_json,) = json.loads(document)
    lines = format_tree(found, TEXT)
    assert lines[0].startswith("Fit  (strategy=")
    assert [part["Node Type"] for part in document_json["Plan"]["Plans"]] == [
        *["Workers", "States"],
        *["Features"] * len(plan.stored_layers),
        *["Program"] * 2,
    ]
    assert sum(line.startswith("  ->  ") for line in lines) == len(document_json["Plan"]["Plans"])
    for node, program in zip(document_json["Plan"]["Plans"][-2:], plan.programs, strict=True):
        shards = node.get("Plans", [])
        assert [shard["Layers"] for shard in shards] == ["first to third", "out"][
            : len(program.shards)
        ]
        assert [shard["Memory"] for shard in shards] == [
            shard["memory_bytes"] for shard in program.shards
        ]
    assert sum("->  Shard" in line for line in lines) == sum(
        len(program.shards) for program in plan.programs
    )
    assert document_json["Plan"]["Compared"][0]["seconds"] == plan.strategy.seconds


@given(plans())
def test_the_cost_of_a_plan_is_that_of_its_workers(plan: RunPlan) -> None:
    """A second costs 1: at most the time of all workers, at least that of storing layers."""
    found = build_tree(plan, PlanContext(prices=Prices(core_hour=HOUR))).properties
    assert not build_tree(plan, PlanContext()).properties.keys() & {"Most Cost", "Expected Cost"}
    if plan.strategy.seconds is None:
        assert not found.keys() & {"Most Cost", "Expected Cost"}
        return
    cost = found["Most Cost" if plan.work.may_end_early else "Expected Cost"]
    assert isinstance(cost, Money)
    cores = plan.strategy.workers * plan.strategy.threads
    assert (
        cores * plan.storing_seconds
        < cost.value
        <= cores * (plan.strategy.seconds + plan.storing_seconds) * (1 + 1e-9)
    )


COUNT = st.integers(1, 50)


@given(COUNT, COUNT, COUNT, st.tuples(SECONDS, SECONDS, SECONDS, SECONDS))
def test_estimated_costs_add_up_to_the_measured_ones(
    firsts: int, moves: int, stays: int, seconds: tuple[float, ...]
) -> None:
    training, staying, moving, compiling = seconds
    hop = max(moving, staying)
    visits = firsts + moves + stays
    found = VisitCosts(
        program="a/8",
        visits=visits,
        rows=100.0 * visits,
        training_seconds=training * visits,
        spread=0.1,
        form="x",
        fused_visits=0,
        threads=1,
        state_bytes=8,
        later_visits=moves + stays,
        later_overhead=hop * moves + staying * stays,
        hops=moves,
        hop_overhead=hop * moves,
        first_visits=firsts,
        first_overhead=(hop + compiling) * firsts,
        stores=1,
        store_seconds=2.0,
        stored_bytes=8.0,
    )
    log = LoggedCosts({"a/8": found}, {"a/8": EvaluationCosts("a/8", 1, 10.0, 5.0)}, {})
    program = apply_costs(Program("a/8", (1,), "jax", 8, UNKNOWN), log)
    assert program.row_seconds is not None
    again = (
        program.row_seconds * found.rows + program.hop * (moves + firsts) + program.compile * firsts
    )
    assert math.isclose(
        again, found.training_seconds + found.later_overhead + found.first_overhead, rel_tol=1e-6
    )
    assert program.evaluation_row_seconds == 0.5
    assert program.store == 2.0
