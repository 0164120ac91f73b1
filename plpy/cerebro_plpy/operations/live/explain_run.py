"""The plan of a logged run together with its actual times.

It shows the error of each estimate, and the alternatives that would have been better.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import LIST_RUNS, NullNotAllowed, ObjectNotReady, UndefinedObject
from cerebro_plpy.operations.fit.cost_limits import read_prices
from cerebro_plpy.operations.fit.explain_fit import check_format
from cerebro_plpy.records import replace
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.log.program_costs import LoggedCosts, VisitCosts
from cerebro_plpy.run.planning import explain_output, explain_tree, workload
from cerebro_plpy.run.planning.explain_tree import ActualRun, PlanContext
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_plan import (
    MOP,
    TASK,
    UNKNOWN,
    Data,
    PlanInputs,
    Program,
    RunPlan,
    Strategy,
    Work,
)
from cerebro_plpy.trainer_client import settings

MODULE = "plan_of"
ALL_VISITS = 2**31 - 1
PROGRAM_COLUMNS = ("backend", "model_id", "compile_params", "fit_params")
"""Configurations that are equal in these have the same program."""


def explain_run(db: Database, run_id: int | None, form: str | None) -> list[str]:
    """Return the lines of a run's plan, with the actual times.

    Args:
        form: the format of the plan.
    """
    form = check_format(MODULE, form)
    if run_id is None:
        raise NullNotAllowed(f"{MODULE} error: run_id is NULL.", hint=LIST_RUNS)
    rows = db.peek(sql("plan.planned"), run_id)
    if not rows:
        raise UndefinedObject(f"{MODULE} error: there is no run {run_id} of yours.", hint=LIST_RUNS)
    run = rows[0]
    plan = _read_plan(run) or _make_plan(db, run)
    if not plan.alternatives:
        alternatives = _estimate_alternatives(plan, plan.programs)[1:]
        plan = replace(plan, alternatives=tuple(alternatives))
    context = PlanContext(prices=read_prices(settings.read(db)))
    tree = explain_tree.build_tree(plan, context, _read_actual_run(db, run, plan))
    return explain_output.format_tree(tree, form)


def _read_plan(run: Row) -> RunPlan | None:
    """Return the logged plan of a run; None if it is missing, or its owner has changed it."""
    if not run["plan"]:
        return None
    try:
        return RunPlan.from_json(json.loads(run["plan"]))
    except workload.MALFORMED:
        return None


def _make_plan(db: Database, run: Row) -> RunPlan:
    """Return a plan, without times, of a run that has not logged one."""
    run_id = run["run_id"]
    groups: dict[tuple[object, ...], list[int]] = {}
    for config in db.peek(sql("plan.configs"), run_id):
        key = tuple(config[column] for column in PROGRAM_COLUMNS)
        groups.setdefault(key, []).append(config["mst_key"])
    if not groups:
        raise ObjectNotReady(f"{MODULE} error: run {run_id} has no configurations.", hint=LIST_RUNS)
    programs = []
    rows: dict[int, int] = {}
    for number, (key, mst_keys) in enumerate(groups.items(), 1):
        programs.append(Program(str(number), tuple(mst_keys), str(key[0]), 0, UNKNOWN))
        rows.update(dict.fromkeys(mst_keys, 0))
    course = db.peek(sql("plan.course"), run_id, run_id)[0]
    work = Work(run["epochs"], (), tuple(run["segments"]), rows, 0.0, "longest")
    strategy = Strategy(MOP, max(1, course["workers"]), 1)
    return RunPlan(work, tuple(programs), strategy, (), Data(0, 0, 0, 0))


def _read_actual_run(db: Database, run: Row, plan: RunPlan) -> ActualRun:
    """Read the actual costs of a run from its log."""
    run_id = run["run_id"]
    mapping = program_costs.encode_programs(plan.programs)
    visits = db.peek(sql("plan.visits"), mapping, run_id, ALL_VISITS)
    evaluations = db.peek(sql("plan.evaluations"), mapping, run_id)
    costs = LoggedCosts.from_rows(
        plan, [row.values() for row in visits], [row.values() for row in evaluations]
    )
    programs = tuple(program_costs.apply_costs(program, costs) for program in plan.programs)
    course = db.peek(sql("plan.course"), run_id, run_id)[0]
    worker_seconds = course["workers"] * course["span"]
    idle_share = 0.0
    if worker_seconds:
        idle_share = max(0.0, 1 - course["work"] / worker_seconds)
    return ActualRun(
        status=run["status"],
        seconds=run["seconds"],
        idle_share=idle_share,
        programs=programs,
        alternatives=tuple(_estimate_alternatives(plan, programs)),
        sums={program: _sum_costs(visits) for program, visits in costs.visits.items()},
        changes=tuple(_format_change(**row) for row in db.peek(sql("plan.changes"), run_id)),
        money=db.peek(sql("plan.money"), run_id)[0]["money"],
    )


def _format_change(epoch: int, rule: str, reason: str) -> str:
    return f"to {rule} after epoch {epoch}: {reason}"


def _estimate_alternatives(plan: RunPlan, programs: Sequence[Program]) -> list[Strategy]:
    """Return the plan's strategy and its alternative, with expected times for the same trainers.

    Args:
        programs: the programs with the costs to use.
    """
    strategy = plan.strategy
    if strategy.seconds is None:
        return []
    strategies = [strategy]
    alternative = {MOP: TASK, TASK: MOP}.get(strategy.name)
    if alternative and plan.data.bytes <= plan.data.capacity_bytes:
        strategies.append(replace(strategy, name=alternative))
    inputs = PlanInputs(plan.work, {}, plan.compiled)
    return [run_plan.estimate_strategy(inputs, programs, candidate) for candidate in strategies]


def _sum_costs(visits: VisitCosts) -> Mapping[str, float]:
    return {
        "visits": visits.visits,
        "fused": visits.fused_visits,
        "hops": visits.hops,
        "stores": visits.stores,
        "bytes": visits.stored_bytes,
        "storing": visits.store_seconds,
        "compiling": visits.compile_seconds,
    }
