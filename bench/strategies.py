"""Compare the strategy that a run chooses with all strategies, in turns, on each workload."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from bench import ours, turns
from bench.bench_server import BenchServer, Echo
from bench.job import Job
from bench.workloads import Workload

AUTO = "auto"
WAYS: Mapping[str, Mapping[str, Any]] = {
    AUTO: {},
    "mop": {"strategy": "mop"},
    "task": {"strategy": "task"},
    "wide": {"workers": 1},
}
"""The arguments of each strategy; a single wide trainer has all cores."""
MAX_RATIO = 1.1
"""Largest time of the chosen strategy relative to the best one."""
WARM_UP_TURNS = 2
"""Turns before the measurement, after which the log contains the cost of each strategy."""
SHORT_SECONDS = 10.0
SHORT_FACTOR = 5
"""If a turn takes less than SHORT_SECONDS, this many times more turns are measured."""


@dataclass(frozen=True)
class StrategyRuns:
    """Logged seconds of the runs by strategy, and the strategies that runs chose."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    chosen_strategies: list[str] = field(default_factory=list)

    @property
    def medians(self) -> dict[str, float]:
        """The median seconds of each strategy."""
        return {way: median(results) for way, results in self.seconds.items()}

    @property
    def ratio(self) -> float:
        """The chosen strategy relative to the best one."""
        results = self.medians
        return results[AUTO] / min(results.values())


def measure_strategies(
    server: BenchServer,
    workloads: Sequence[Workload],
    scale: str,
    repeats: int,
    echo: Echo,
) -> dict[str, StrategyRuns]:
    """Measure each strategy on each workload."""
    results = {}
    for workload in workloads:
        job = turns.prepare_job(server, workload, scale)
        strategy_runs = StrategyRuns()
        number = 0
        most = WARM_UP_TURNS + repeats
        while number < most:
            began = time.perf_counter()
            for way, settings in _order_strategies(number):
                seconds, strategy = run(replace(job, settings={**job.settings, **settings}))
                echo(f"  {workload.key}, {way}, {number + 1}: {seconds:.2f} s ({strategy})")
                if number >= WARM_UP_TURNS:
                    strategy_runs.seconds[way].append(seconds)
                    strategy_runs.chosen_strategies.extend([strategy] if way == AUTO else [])
            number += 1
            if number == WARM_UP_TURNS and time.perf_counter() - began < SHORT_SECONDS:
                most = WARM_UP_TURNS + SHORT_FACTOR * repeats
        results[workload.key] = strategy_runs
    return results


def _order_strategies(number: int) -> Sequence[tuple[str, Mapping[str, object]]]:
    """Return the strategies, starting with another one in each turn."""
    ways = [*WAYS.items()]
    first = number % len(WAYS)
    return [*ways[first:], *ways[:first]]


def run(job: Job) -> tuple[float, str]:
    """Run a job in a session of its own; return its seconds and its last strategy."""
    session = job.connect()
    try:
        run_id = ours.fit(session, job)
        with session.cursor() as cursor:
            cursor.execute(
                "SELECT extract(epoch FROM r.ended_at - r.started_at)::double precision, "
                "coalesce((SELECT d.rule FROM cerebro.decision d WHERE d.run_id = r.run_id AND "
                "d.action = 'replan' ORDER BY d.decision_no DESC LIMIT 1), r.plan -> 'chosen' ->> "
                "'name') FROM cerebro.run_log r WHERE r.run_id = %s",
                (run_id,),
            )
            seconds, strategy = cursor.fetchone()  # type: ignore[misc]
    finally:
        session.close()
    return float(seconds), str(strategy)


def report(results: Mapping[str, StrategyRuns], titles: Mapping[str, str]) -> str:
    """Return a table of the medians."""
    lines = [
        f"| workload | chosen | {' | '.join(WAYS)} | chosen against the best |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, strategy_runs in results.items():
        strategy = ", ".join(sorted({*strategy_runs.chosen_strategies}))
        times = " | ".join(f"{seconds:.1f} s" for seconds in strategy_runs.medians.values())
        ratio_text = (
            f"{strategy_runs.ratio:.2f}{'' if strategy_runs.ratio <= MAX_RATIO else ' (too much)'}"
        )
        lines.append(f"| {key}: {titles[key]} | {strategy} | {times} | {ratio_text} |")
    return "\n".join(lines)
