"""Compare the estimated with the measured duration of runs.

Each workload is planned and run repeatedly, each time in a new session.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench import ours, turns
from bench.bench_server import BenchServer, Echo
from bench.job import Job
from bench.workloads import Workload

MOST_OFF = 0.25
"""Largest relative error that the median of the estimates may have."""


@dataclass(frozen=True)
class Estimate:
    """Two estimates of a run's seconds, and its duration."""

    planned: float | None  # by the plan of the call
    at_start: float | None  # by the run, after its trainers had started
    duration: float

    def relative_error(self, expected: float | None) -> float:
        """Return the relative error of an estimate; infinite without one."""
        return float("inf") if expected is None else abs(expected / self.duration - 1)


def measure_estimates(
    server: BenchServer,
    workloads: Sequence[Workload],
    scale: str,
    repeats: int,
    echo: Echo,
) -> dict[str, list[Estimate]]:
    """Return the estimates of each workload from its second run on."""
    estimates_by_key = {}
    for workload in workloads:
        job = turns.prepare_job(server, workload, scale)
        estimates = []
        for number in range(repeats + 1):
            estimates.append(measure_estimate(job))
            echo(f"  {workload.key}, run {number + 1}: {estimates[-1]}")
        estimates_by_key[workload.key] = estimates[1:]
    return estimates_by_key


def measure_estimate(job: Job) -> Estimate:
    """Plan a job, and run it."""
    session = job.connect()
    try:
        planned = _estimate_seconds(session, job)
        run_id = ours.fit(session, job)
        with session.cursor() as cursor:
            cursor.execute(
                "SELECT extract(epoch FROM ended_at - started_at)::double precision, plan FROM "
                "cerebro.run_log WHERE run_id = %s",
                (run_id,),
            )
            duration, plan = cursor.fetchone()  # type: ignore[misc]
    finally:
        session.close()
    seconds = plan["chosen"]["seconds"]
    return Estimate(
        planned, None if seconds is None else plan["begun"] + seconds + plan["beside"], duration
    )


def _estimate_seconds(session: Any, job: Job) -> float | None:
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT cerebro.plan_fit(%s, %s, %s, validation_table => %s, seed => %s, "
            "training_metrics => false, format => 'json')",
            (job.packed, job.selection, job.epochs, job.packed_valid, job.seed),
        )
        expected = json.loads(cursor.fetchone()[0])[0]["Plan"]["Expected"]
    return None if isinstance(expected, str) else float(expected)


def report(estimates_by_key: dict[str, list[Estimate]], titles: dict[str, str]) -> str:
    """Return a table of the medians."""
    lines = ["| workload | took | planned, off by | when it began, off by |", "|---|---|---|---|"]
    for key, estimates in estimates_by_key.items():
        duration = median(estimate.duration for estimate in estimates)
        errors = [
            median(estimate.relative_error(getattr(estimate, name)) for estimate in estimates)
            for name in ("planned", "at_start")
        ]
        text = " | ".join(
            f"{100 * error:.0f} %{'' if error <= MOST_OFF else ' (too much)'}" for error in errors
        )
        lines.append(f"| {key}: {titles[key]} | {duration:.1f} s | {text} |")
    return "\n".join(lines)
