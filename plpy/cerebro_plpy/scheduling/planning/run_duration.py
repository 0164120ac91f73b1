"""The expected duration of a run, and lower bounds of it."""

from __future__ import annotations

import math

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.planning.simulation import (
    Case,
    Outcome,
    averaging_seconds,
    simulate,
)

MAX_VISITS = 64
"""Number of visits to simulate of a longer run: epochs are alike, except for the first and last."""
MAX_EPOCH_VISITS = 128
"""A run with more visits in an epoch is not simulated: its workers always have work."""


def estimate_run(case: Case, max_visits: int = MAX_VISITS) -> Outcome:
    """Return the expected outcome of a run; that of a long run is extrapolated."""
    if case.visits > MAX_EPOCH_VISITS:
        return _estimate_crowded(case)
    epochs = max(2, max_visits // max(1, case.visits))
    if case.plan.epochs <= epochs:
        return simulate(case)
    return _extrapolate(case, epochs)


def _extrapolate(case: Case, epochs: int) -> Outcome:
    """Extrapolate the outcome of a run from the difference of two shorter ones."""
    plan = case.plan
    shorter = simulate(_shorten(case, epochs - 1))
    longer = simulate(_shorten(case, epochs))
    evaluations = max(0, len(plan.evaluations) - 1)
    evaluation_seconds = evaluations * sum(
        cost.evaluate * len(plan.segments_of(key)) for key, cost in case.costs.items()
    )
    worker_seconds = evaluation_seconds / case.workers

    def extend(short: float, long: float) -> float:
        return long + (plan.epochs - epochs) * max(0.0, long - short)

    return Outcome(
        seconds=extend(shorter.seconds, longer.seconds) + worker_seconds,
        busy_seconds={
            worker: extend(shorter.busy_seconds[worker], seconds) + worker_seconds
            for worker, seconds in longer.busy_seconds.items()
        },
        visits=int(extend(shorter.visits, longer.visits)),
        hops=int(extend(shorter.hops, longer.hops)),
        stores=int(extend(shorter.stores, longer.stores)),
        compilations=int(extend(shorter.compilations, longer.compilations)),
    )


def _shorten(case: Case, epochs: int) -> Case:
    """Return the first epochs of a run, with one evaluation at the end if the run evaluates."""
    evaluated = frozenset({epochs} if case.plan.evaluations else ())
    return replace(case, plan=replace(case.plan, epochs=epochs, evaluate_epochs=evaluated))


def _estimate_crowded(case: Case) -> Outcome:
    """Return the outcome of a run whose workers always have work."""
    plan = case.plan
    workers = set(plan.workers.values())
    visits = {key: plan.epochs * len(plan.segments_of(key)) for key in case.costs}
    programs = {cost.program: cost.compile for cost in case.costs.values()}
    compilations = len(programs)
    compile_seconds = sum(programs.values())
    if case.is_stationary:
        compile_seconds *= 1 / len(workers)
    else:
        compilations *= len(workers)
    overhead = sum(visits[key] * (cost.hop + cost.store) for key, cost in case.costs.items())
    total_visits = sum(visits.values())
    averages = 0
    if plan.is_averaging:
        overhead += plan.epochs * sum(averaging_seconds(case, key) for key in case.costs)
        averages = plan.epochs * len(visits)
    overhead /= len(workers)
    busy_seconds = balanced_seconds(case) + overhead
    return Outcome(
        seconds=max(longest_config_seconds(case), busy_seconds) + compile_seconds,
        busy_seconds=dict.fromkeys(workers, busy_seconds + compile_seconds),
        visits=total_visits,
        hops=total_visits + averages * len(plan.copies),
        stores=total_visits + averages,
        compilations=compilations,
    )


def lower_bound(case: Case) -> float:
    """Return the seconds that any schedule takes: configs and workers do one visit at a time.

    >>> from cerebro_plpy.scheduling.planning.simulation import ConfigCost
    >>> from cerebro_plpy.scheduling.schedule.schedule import Plan
    >>> plan, equal = Plan(1, (0, 1), {0: 0, 1: 1}), ConfigCost("a", 1.0)
    >>> lower_bound(Case(plan, {1: ConfigCost("a", 3.0), 2: equal}))
    6.0
    >>> lower_bound(Case(plan, dict.fromkeys((1, 2, 3), equal)))
    3.0
    """
    return max(longest_config_seconds(case), balanced_seconds(case))


def longest_config_seconds(case: Case) -> float:
    """Return the training seconds of the config with the most work.

    Its copies train at once, as far as there are workers.
    """
    concurrent = min(case.workers, max(1, len(case.plan.copies)))
    seconds = (
        cost.train * math.ceil(len(case.plan.segments_of(key)) / concurrent) * case.plan.epochs
        for key, cost in case.costs.items()
    )
    return max(seconds, default=0.0)


def balanced_seconds(case: Case) -> float:
    """Return the seconds of each worker if all work could be divided evenly."""
    evaluations = len(case.plan.evaluations)
    seconds = (
        len(case.plan.segments_of(key))
        * (cost.train * case.plan.epochs + cost.evaluate * evaluations)
        for key, cost in case.costs.items()
    )
    return sum(seconds) / case.workers
