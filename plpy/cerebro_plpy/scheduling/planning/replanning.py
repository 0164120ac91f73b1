"""Replanning: the plan of a live run is revised with the times of its visits so far.

Saturn (Nagrecha and Kumar, VLDB 2024) calls this introspection: at intervals the remaining work is
planned again, and the new plan is adopted if it is better by a threshold. Here, the run is
replanned between epochs, and configs may change between hopping and staying. The number of workers
and their threads cannot change: their trainers have started, and the bits depend on the threads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.planning import run_duration, run_plan
from cerebro_plpy.scheduling.planning.run_plan import (
    MOP,
    TASK,
    WORTHWHILE_RATIO,
    PlanInputs,
    Program,
    RunPlan,
    Strategy,
    Work,
)


class StrategyChange(NamedTuple):
    """A change of strategy; `seconds` of both are those expected for the remaining work."""

    current: Strategy
    proposed: Strategy


class Replan(NamedTuple):
    """A row of the log: a change of strategy."""

    decision_no: int  # number of the decision in the run
    strategy: str
    epoch: int  # completed by all configs
    visits: int
    last_epoch: int
    reason: str


def is_surprising(plan: RunPlan, programs: Sequence[Program]) -> bool:
    """Return True if a program's measured times differ from the plan by more than its error.

    >>> program = Program("a", (1,), "jax", 8, run_plan.MEASURED, row_seconds=1.0)
    >>> work = Work(1, (), (0,), {1: 1}, 0.0, "longest")
    >>> strategy, data = Strategy(TASK, 1, 1), run_plan.Data(1, 1, 1, 1)
    >>> plan = RunPlan(work, (program,), strategy, (), data, error=0.1)
    >>> [is_surprising(plan, [replace(program, row_seconds=row)]) for row in (1.05, 1.2, 0.8, None)]
    [False, True, True, False]
    """
    expected = {program.name: program.row_seconds for program in plan.programs}
    return any(
        program.row_seconds is not None
        and _relative_error(expected.get(program.name), program.row_seconds) > (plan.error or 0.0)
        for program in programs
    )


def _relative_error(expected: float | None, actual: float) -> float:
    return abs(actual / expected - 1) if expected else math.inf


def remaining_work(work: Work, epochs: int, visits: Mapping[int, int]) -> Work:
    """Return the work after all configs have completed some epochs.

    Some configs are ahead. They keep as many visits as the others, but shorter ones.

    Args:
        epochs: completed by all configs.
        visits: number of remaining training visits, by mst_key.
    """
    remaining_epochs = work.epochs - epochs

    def scale_rows(mst_key: int, count: int) -> int:
        segments = work.segment_subsets.get(mst_key, work.segments)
        return max(1, work.rows[mst_key] * count // (remaining_epochs * len(segments)))

    return replace(
        work,
        epochs=remaining_epochs,
        evaluate_epochs=tuple(epoch - epochs for epoch in work.evaluate_epochs if epoch > epochs),
        rows={key: scale_rows(key, count) for key, count in visits.items()},
        segment_subsets={
            key: segments for key, segments in work.segment_subsets.items() if key in visits
        },
    )


def propose_change(
    work: Work,
    programs: Sequence[Program],
    compiled: Mapping[int, Collection[str]],
    strategy: Strategy,
    pace: float = math.inf,
) -> StrategyChange | None:
    """Return the change of strategy that pays off for the remaining work, if any.

    Args:
        work: the remaining work.
        compiled: programs that each worker has compiled, by worker.
        strategy: the current strategy.
        pace: seconds of an epoch. Nothing is simulated if the run, at this pace, ends nearly as
            soon as with any strategy.
    """
    active = [
        replace(program, configs=tuple(key for key in program.configs if key in work.rows))
        for program in programs
    ]
    inputs = PlanInputs(work, {}, compiled)
    case = run_plan.make_case(inputs, active, strategy)
    if case is None or run_duration.lower_bound(case) > WORTHWHILE_RATIO * pace * work.epochs:
        return None
    current = run_plan.estimate_strategy(inputs, active, strategy)
    if not run_plan.may_improve(inputs, active, current):
        return None
    other_name = MOP if strategy.name == TASK else TASK
    alternative = run_plan.estimate_strategy(inputs, active, replace(strategy, name=other_name))
    best = run_plan.choose_strategy(current, [alternative])
    if best is current:
        return None
    return StrategyChange(current, best)
