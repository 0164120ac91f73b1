"""The plan of a run that is in the log, beside what happened: how far each estimate was off, and
what would have been better by the times that were measured."""

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
from cerebro_plpy.run.log.program_costs import LoggedCosts
from cerebro_plpy.run.planning import explain_output, workload
from cerebro_plpy.run.planning.explain_output import ActualRun, PlanContext
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
ALL = 2**31 - 1  # visits of each configuration


def explain_run(db: Database, run_id: int | None, form: str | None) -> list[str]:
    """The plan of a run, line by line, with what happened."""
    wanted = check_format(MODULE, form)
    if run_id is None:
        raise NullNotAllowed(f"{MODULE} error: run_id is NULL.", hint=LIST_RUNS)
    rows = db.peek(sql("plan.planned"), run_id)
    if not rows:
        raise UndefinedObject(f"{MODULE} error: there is no run {run_id} of yours.", hint=LIST_RUNS)
    plan = _planned(rows[0]) or _unplanned(db, rows[0])
    plan = replace(
        plan, alternatives=plan.alternatives or tuple(_compared(plan, plan.programs)[1:])
    )
    return explain_output.format_tree(
        explain_output.build_tree(
            plan, PlanContext(prices=read_prices(settings.read(db))), happened(db, rows[0], plan)
        ),
        wanted,
    )


def _planned(run: Row) -> RunPlan | None:
    """The plan that the run has logged; None where it has none, or somebody has written another
    text.
    """
    try:
        return RunPlan.from_json(json.loads(run["plan"])) if run["plan"] else None
    except workload.MALFORMED:
        return None


def _unplanned(db: Database, run: Row) -> RunPlan:
    """What is known beforehand of a run that has logged no plan: configurations of one model with
    the same parameters are one program."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for each in db.peek(sql("plan.configs"), run["run_id"]):
        key = tuple(each[name] for name in ("backend", "model_id", "compile_params", "fit_params"))
        groups.setdefault(key, []).append(each["mst_key"])
    programs = tuple(
        Program(str(number), tuple(keys), str(key[0]), 0, UNKNOWN)
        for number, (key, keys) in enumerate(groups.items(), 1)
    )
    course = db.peek(sql("plan.course"), run["run_id"], run["run_id"])[0]
    rows = dict.fromkeys((key for keys in groups.values() for key in keys), 0)
    if not rows:
        raise ObjectNotReady(
            f"{MODULE} error: run {run['run_id']} has no configurations.", hint=LIST_RUNS
        )
    work = Work(run["epochs"], (), tuple(run["segments"]), rows, 0.0, "longest")
    return RunPlan(
        work, programs, Strategy(MOP, max(1, course["workers"]), 1), (), Data(0, 0, 0, 0)
    )


def happened(db: Database, run: Row, plan: RunPlan) -> ActualRun:
    """What the log has of the run."""
    run_id, mapping = run["run_id"], program_costs.encode_programs(plan.programs)
    visits = [row.values() for row in db.peek(sql("plan.visits"), mapping, run_id, ALL)]
    evaluations = [row.values() for row in db.peek(sql("plan.evaluations"), mapping, run_id)]
    log = LoggedCosts.from_rows(plan, visits, evaluations)
    course = db.peek(sql("plan.course"), run_id, run_id)[0]
    programs = tuple(program_costs.apply_costs(each, log) for each in plan.programs)
    whole = course["workers"] * course["span"]
    return ActualRun(
        status=run["status"],
        seconds=run["seconds"],
        idle_share=max(0.0, 1 - course["work"] / whole) if whole else 0.0,
        programs=programs,
        alternatives=tuple(_compared(plan, programs)),
        sums={name: _sums(log, name) for name in log.visits},
        changes=tuple(_change(**row) for row in db.peek(sql("plan.changes"), run_id)),
        money=db.peek(sql("plan.money"), run_id)[0]["money"],
    )


def _change(epoch: int, rule: str, reason: str) -> str:
    return f"to {rule} after epoch {epoch}: {reason}"


def _compared(plan: RunPlan, programs: Sequence[Program]) -> Sequence[Strategy]:
    """What strategies for the same trainers would have taken, by the times that were measured."""
    found = [plan.strategy]
    if plan.strategy.name in (MOP, TASK) and plan.data.bytes <= plan.data.capacity_bytes:
        found.append(replace(plan.strategy, name=TASK if plan.strategy.name == MOP else MOP))
    settled = PlanInputs(plan.work, {}, plan.compiled)
    return (
        [run_plan.estimate_strategy(settled, programs, each) for each in found]
        if plan.strategy.seconds is not None
        else []
    )


def _sums(log: LoggedCosts, program: str) -> Mapping[str, float]:
    found = log.visits[program]
    return {
        "visits": found.visits,
        "fused": found.fused,
        "hops": found.moves,
        "stores": found.stores,
        "bytes": found.stored_bytes,
        "storing": found.storing,
        "compiling": found.compiling,
    }
