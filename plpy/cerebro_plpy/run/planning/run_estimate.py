"""The plan of a run whose trainers have started, from measurements of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median, median_low

from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.planning import template_costs
from cerebro_plpy.run.planning.parallelism import Comparison, compare_strategies, compute_sizes
from cerebro_plpy.run.planning.workload import (
    PriorRun,
    ProbeResult,
    ProgramHistory,
    Trainers,
    TrainerSize,
    describe_data,
    describe_work,
    list_stored_layers,
)
from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.run.workers.workers import list_compilations
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_plan import PlanInputs, RunPlan
from cerebro_plpy.scheduling.schedule.visit_batches import MIN_VISIT_SECONDS


def describe_trainers(
    context: CallContext, request: FitRequest, workers: Sequence[Worker]
) -> Trainers:
    """Return the trainers of a run, and the sizes that others could have."""
    sizes: Mapping[int, TrainerSize] = {}
    if not (context.is_local or request.spec.arguments.workers or request.gpus):
        segments = len(request.source.segments)
        usual_workers = min(context.platform.default_workers(segments), segments)
        max_workers = max(request.workers, usual_workers)
        sizes = compute_sizes(context, context.platform.trainer_threads(max_workers))
    cache_bytes = min(worker.memory.cache_bytes for worker in workers)
    return Trainers(
        worker_count=request.workers,
        size=TrainerSize(workers[0].memory.threads, cache_bytes),
        machines={worker.framework: worker.memory.machine for worker in workers},
        sizes=sizes,
        compiled=list_compilations(workers),
        are_segment_bound=not all(worker.is_replaceable for worker in workers),
    )


def make_plan(
    control: Session,
    request: FitRequest,
    trainers: Trainers,
    startup_seconds: float,
    probed: Mapping[str, ProbeResult] | None = None,
) -> RunPlan | None:
    """Return the plan of a run, or None if no trainer has started.

    Args:
        startup_seconds: seconds that the run has taken so far.
        probed: timings that were measured for a plan without a run, by compilation key. Such a plan
            contains all strategies.
    """
    threads = trainers.size.threads
    if not threads:
        return None
    history = ProgramHistory(control, request, trainers.machines)
    timed = [*history.list_programs(threads, probed or {})]
    programs = history.apply_measurements(timed, threads)
    costs = template_costs.read_request_costs(control, request, programs, threads)
    programs = template_costs.apply_template_costs(request, programs, costs)
    inputs = PlanInputs(describe_work(request), request.replay.orders, trainers.compiled)
    comparison = Comparison(request, trainers, inputs, programs, history)
    strategy, alternatives = compare_strategies(comparison, include_all=probed is not None)
    plan = RunPlan(
        work=inputs.work,
        programs=tuple(history.add_lanes(program, strategy) for program in programs),
        strategy=strategy,
        alternatives=tuple(alternatives),
        data=describe_data(request, trainers.size.cache_bytes),
        startup_seconds=startup_seconds,
        compiled={worker: tuple(sorted(names)) for worker, names in inputs.compiled.items()},
        stored_layers=tuple(list_stored_layers(request, trainers.worker_count * threads)),
    )
    plan = correct_plan(plan, history.read_prior_runs(programs, threads))
    if plan.error is None:
        return replace(plan, extra_seconds=costs.extra_seconds)
    return plan


def correct_plan(plan: RunPlan, prior_runs: Sequence[PriorRun]) -> RunPlan:
    """Return the plan with the extra time and the error that runs of the same work had.

    Of two extra times, the lower is taken, because disturbances take longer.
    """
    if plan.strategy.seconds is None:
        return plan
    extra_seconds = [
        estimate_extra_seconds(plan, run)
        for run in prior_runs
        if not run.has_changed_strategy
        and run.plan.work == plan.work
        and run.plan.strategy.name == plan.strategy.name
    ]
    if not extra_seconds:
        return plan
    plan = replace(plan, extra_seconds=median_low(extra_seconds))
    expected_seconds = max(plan.seconds or 0.0, MIN_VISIT_SECONDS)
    errors = [abs(seconds - plan.extra_seconds) / expected_seconds for seconds in extra_seconds]
    if len(errors) > 2:
        return replace(plan, error=median(errors))
    spreads = [program.spread for program in plan.programs if program.spread is not None]
    return replace(plan, error=max([*spreads, *errors]))


def count_compiled(plan: RunPlan) -> int:
    """Return the number of programs of a run that workers have compiled before, over workers."""
    names = {program.name for program in plan.programs}
    return sum(len(names.intersection(compiled)) for compiled in plan.compiled.values())


def estimate_extra_seconds(plan: RunPlan, run: PriorRun) -> float:
    """Return the time that a run like an earlier one takes in addition to its visits.

    It is negative, in proportion to the plan, if the earlier run took less than expected.
    """
    planned_seconds = plan.strategy.seconds or 0.0
    expected_seconds = planned_seconds
    if count_compiled(run.plan) != count_compiled(plan):
        inputs = PlanInputs(run.plan.work, {}, run.plan.compiled)
        outcome = run_plan.estimate_outcome(inputs, plan.programs, run.plan.strategy)
        if outcome:
            expected_seconds = outcome.seconds
    seconds = run.seconds - run.plan.startup_seconds - run.plan.storing_seconds
    if seconds >= expected_seconds:
        return seconds - expected_seconds
    return planned_seconds * (seconds / expected_seconds - 1)
