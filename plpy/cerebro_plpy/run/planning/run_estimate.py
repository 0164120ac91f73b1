"""What a run is expected to take when its trainers have started: by what earlier runs have measured
of its programs.
"""

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
from cerebro_plpy.run.workers import workers
from cerebro_plpy.scheduling.planning import run_plan
from cerebro_plpy.scheduling.planning.run_plan import PlanInputs, RunPlan
from cerebro_plpy.scheduling.schedule.visit_batches import MIN_VISIT_SECONDS


def describe_trainers(
    workplace: CallContext, request: FitRequest, started: Sequence[Worker]
) -> Trainers:
    """The trainers of a run, and what others there might be."""
    segments = len(request.source.segments)
    fixed = workplace.is_local or request.spec.arguments.workers or request.gpus
    most = min(workplace.platform.default_workers(segments), segments)
    widths = {} if fixed else workplace.platform.trainer_threads(most)
    room = min(worker.memory.cache_bytes for worker in started)
    return Trainers(
        worker_count=request.workers,
        size=TrainerSize(started[0].memory.threads, room),
        machines={worker.framework: worker.memory.machine for worker in started},
        sizes=compute_sizes(workplace, widths),
        compiled=workers.list_compilations(started),
        are_segment_bound=not all(worker.is_replaceable for worker in started),
    )


def make_plan(
    control: Session,
    request: FitRequest,
    trainers: Trainers,
    begun: float,
    probed: Mapping[str, ProbeResult] | None = None,
) -> RunPlan | None:
    """The plan of a run whose trainers are there; None where it is of no use.

    `begun` are the seconds that it has taken so far. One that is asked for, and not made where a
    run begins, has all strategies; `probed` are programs that were timed for it.
    """
    threads = trainers.size.threads
    if not threads:
        return None
    knowledge = ProgramHistory(control, request, trainers.machines)
    programs = knowledge.apply_measurements(
        [*knowledge.list_programs(threads, probed or {})], threads
    )
    like = template_costs.read_request_costs(control, request, programs, threads)
    programs = template_costs.apply_template_costs(request, programs, like)
    settled = PlanInputs(describe_work(request), request.replay.orders, trainers.compiled)
    comparison = Comparison(request, trainers, settled, programs, knowledge)
    chosen, others = compare_strategies(comparison, every=probed is not None)
    plan = RunPlan(
        work=settled.work,
        programs=tuple(knowledge.add_lanes(each, chosen) for each in programs),
        strategy=chosen,
        alternatives=tuple(others),
        data=describe_data(request, trainers.size.cache_bytes),
        startup_seconds=begun,
        compiled={worker: tuple(sorted(found)) for worker, found in settled.compiled.items()},
        stored_layers=tuple(list_stored_layers(request, trainers.worker_count * threads)),
    )
    plan = correct_plan(plan, knowledge.read_prior_runs(programs, threads))
    return plan if plan.error is not None else replace(plan, extra_seconds=like.extra_seconds)


def correct_plan(plan: RunPlan, earlier: Sequence[PriorRun]) -> RunPlan:
    """The plan with what runs of the same work took beside what is known of their visits, and how
    far their times lie apart. Of two the lower: what is odd takes longer."""
    if plan.strategy.seconds is None:
        return plan
    kept = [each for each in earlier if not each.has_changed_strategy]
    alike = [
        each
        for each in kept
        if each.plan.work == plan.work and each.plan.strategy.name == plan.strategy.name
    ]
    rests = [estimate_extra_seconds(plan, each) for each in alike]
    if not rests:
        return plan
    plan = replace(plan, extra_seconds=median_low(rests))
    apart = [
        abs(each - plan.extra_seconds) / max(plan.seconds or 0.0, MIN_VISIT_SECONDS)
        for each in rests
    ]
    known = [each.spread for each in plan.programs if each.spread is not None]
    return replace(plan, error=median(apart) if len(apart) > 2 else max([*known, *apart]))


def count_compiled(plan: RunPlan) -> int:
    """How many programs of a run its workers have compiled before, each."""
    names = {each.name for each in plan.programs}
    return sum(len(names.intersection(found)) for found in plan.compiled.values())


def estimate_extra_seconds(plan: RunPlan, earlier: PriorRun) -> float:
    """What an earlier run took beside its visits; where it was over sooner than these are expected
    to be, what part of them they took."""
    again, took = (
        plan.strategy.seconds or 0.0,
        earlier.seconds - earlier.plan.startup_seconds - earlier.plan.storing_seconds,
    )
    if count_compiled(earlier.plan) != count_compiled(plan):
        found = run_plan.estimate_outcome(
            PlanInputs(earlier.plan.work, {}, earlier.plan.compiled),
            plan.programs,
            earlier.plan.strategy,
        )
        again = found.seconds if found else again
    if took >= again:
        return took - again
    return (plan.strategy.seconds or 0.0) * (took / again - 1)
