"""A plan made again while its run goes on, by what visits have taken by then.

What Saturn calls introspection (Nagrecha and Kumar, VLDB 2024): at intervals the rest of the work
is planned again, and that plan is adopted where it is better by a threshold. Here that is done at
the borders of epochs, and what may change is whether configs hop or stay: the number of workers and
their width are given by trainers that have started, and bits depend on the width.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.planning import run_plan, simulation
from cerebro_plpy.scheduling.planning.run_plan import (
    MOP,
    TASK,
    WORTH,
    Program,
    RunPlan,
    Settled,
    Strategy,
    Work,
)


class Change(NamedTuple):
    """From one strategy to another, each with the seconds that the rest of the run is expected to
    take by it.
    """

    before: Strategy
    after: Strategy


class Replan(NamedTuple):
    """A change as it is logged: which decision of the run it is, to which strategy, after which
    epoch of all configs and how many visits, of how many epochs, and why."""

    decision_no: int
    strategy: str
    epoch: int
    visits: int
    last_epoch: int
    reason: str


def surprising(plan: RunPlan, programs: Sequence[Program]) -> bool:
    """Whether visits of any program have taken other times than a plan has expected, beyond the
    error of its estimate.

    >>> program = Program("a", (1,), "jax", 8, run_plan.MEASURED, row=1.0)
    >>> work = Work(1, (), (0,), {1: 1}, 0.0, "longest")
    >>> way, data = Strategy(TASK, 1, 1), run_plan.Data(1, 1, 1, 1)
    >>> plan = RunPlan(work, (program,), way, (), data, error=0.1)
    >>> [surprising(plan, [replace(program, row=row)]) for row in (1.05, 1.2, 0.8, None)]
    [False, True, True, False]
    """
    expected = {program.name: program.row for program in plan.programs}
    return any(
        program.row is not None
        and _apart(expected.get(program.name), program.row) > (plan.error or 0.0)
        for program in programs
    )


def _apart(expected: float | None, found: float) -> float:
    return abs(found / expected - 1) if expected else float("inf")


def left(work: Work, epochs: int, visits: Mapping[int, int]) -> Work:
    """What is still to be done when all configs have completed so many epochs, and each has so many
    `visits` to train.

    Some are ahead: theirs are as many as the others', and so much shorter.
    """
    ahead = work.epochs - epochs
    found = {key: ahead * len(work.own.get(key, work.segments)) for key in visits}
    return replace(
        work,
        epochs=ahead,
        evaluate_epochs=tuple(epoch - epochs for epoch in work.evaluate_epochs if epoch > epochs),
        rows={key: max(1, work.rows[key] * count // found[key]) for key, count in visits.items()},
        own={key: own for key, own in work.own.items() if key in visits},
    )


def change(
    work: Work,
    programs: Sequence[Program],
    compiled: Mapping[int, Collection[str]],
    strategy: Strategy,
    pace: float = math.inf,
) -> Change | None:
    """To which strategy a run is to change that has this still to do; None where it goes on as it
    does.

    `compiled` is what each worker has compiled by then. At its `pace`, in seconds for an epoch, it
    may be done nearly as soon as by any strategy: then nothing is simulated.
    """
    own = [
        replace(each, configs=tuple(key for key in each.configs if key in work.rows))
        for each in programs
    ]
    settled = Settled(work, {}, compiled)
    case = run_plan.case(settled, own, strategy)
    if case is None or simulation.least(case) > WORTH * pace * work.epochs:
        return None
    now = run_plan.priced(settled, own, strategy)
    if not run_plan.improvable(settled, own, now):
        return None
    other = run_plan.priced(
        settled, own, replace(strategy, name=MOP if strategy.name == TASK else TASK)
    )
    best = run_plan.cheapest(now, [other])
    return None if best is now else Change(now, best)
