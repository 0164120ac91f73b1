"""How far off estimates are: each workload is planned and run, again and again, each time in a
session of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench import ours, turns
from bench.job import Job
from bench.place import Place
from bench.workloads import Workload

MOST_OFF = 0.25
"""Of what a run takes: what the median of the estimates may be off by."""


@dataclass(frozen=True)
class Estimate:
    """What was expected by the plan of a call, by the run when its trainers had started, and what
    the run took.
    """

    planned: float | None
    begun: float | None
    took: float

    def off(self, expected: float | None) -> float:
        """How far an expectation lies from what the run took, as a part of that."""
        return float("inf") if expected is None else abs(expected / self.took - 1)


def measured(
    at: Place, workloads: Sequence[Workload], scale: str, repeats: int, say: Callable[[str], None]
) -> dict[str, list[Estimate]]:
    """Estimates of each workload from its second run on."""
    found = {}
    for workload in workloads:
        job = turns.ready(at, workload, scale)
        every = []
        for number in range(repeats + 1):
            every.append(estimate(job))
            say(f"  {workload.key}, run {number + 1}: {every[-1]}")
        found[workload.key] = every[1:]
    return found


def estimate(job: Job) -> Estimate:
    """Plan a job, and do it."""
    session = job.connect()
    try:
        planned = _planned(session, job)
        run_id = ours.fit(session, job)
        with session.cursor() as cursor:
            cursor.execute(
                "SELECT extract(epoch FROM ended_at - started_at)::double precision, plan FROM "
                "cerebro.run_log WHERE run_id = %s",
                (run_id,),
            )
            took, plan = cursor.fetchone()  # type: ignore[misc]
    finally:
        session.close()
    chosen = plan["chosen"]["seconds"]
    return Estimate(
        planned, None if chosen is None else plan["begun"] + chosen + plan["beside"], took
    )


def _planned(session: Any, job: Job) -> float | None:
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT cerebro.plan_fit(%s, %s, %s, validation_table => %s, seed => %s, "
            "training_metrics => false, format => 'json')",
            (job.packed, job.selection, job.epochs, job.packed_valid, job.seed),
        )
        expected = json.loads(cursor.fetchone()[0])[0]["Plan"]["Expected"]
    return None if isinstance(expected, str) else float(expected)


def report(found: dict[str, list[Estimate]], titles: dict[str, str]) -> str:
    """A table of the medians."""
    lines = ["| workload | took | planned, off by | when it began, off by |", "|---|---|---|---|"]
    for key, every in found.items():
        took = median(each.took for each in every)
        offs = [
            median(each.off(getattr(each, name)) for each in every) for name in ("planned", "begun")
        ]
        told = " | ".join(
            f"{100 * off:.0f} %{'' if off <= MOST_OFF else ' (too much)'}" for off in offs
        )
        lines.append(f"| {key}: {titles[key]} | {took:.1f} s | {told} |")
    return "\n".join(lines)
