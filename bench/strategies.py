"""The strategy that a run chooses against all that there are: each workload is trained by each of
them, in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from bench import ours, turns
from bench.bench_server import BenchServer
from bench.job import Job
from bench.workloads import Workload

AUTO = "auto"
WAYS: Mapping[str, Mapping[str, Any]] = {
    AUTO: {},
    "mop": {"strategy": "mop"},
    "task": {"strategy": "task"},
    "wide": {"workers": 1},
}
"""With the arguments by which each is asked for: one wide trainer has all cores where there is no
other.
"""
MOST = 1.1
"""Of what the best way takes: what the chosen one may take."""
LEARNING = 2
"""So often each way is tried before, so that the log knows what it takes."""
SHORT_SECONDS, OFTENER = 10.0, 5
"""Where all ways together take less, the median is that of so many times more turns: single runs
tell nothing there.
"""


@dataclass(frozen=True)
class StrategyRuns:
    """Seconds of runs by each way, as the log has them, and which strategies were chosen."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    chosen_strategies: list[str] = field(default_factory=list)

    @property
    def medians(self) -> dict[str, float]:
        """What each way took."""
        return {way: median(results) for way, results in self.seconds.items()}

    @property
    def ratio(self) -> float:
        """What was chosen against the best of all."""
        results = self.medians
        return results[AUTO] / min(results.values())


def measure_strategies(
    server: BenchServer,
    workloads: Sequence[Workload],
    scale: str,
    repeats: int,
    echo: Callable[[str], None],
) -> dict[str, StrategyRuns]:
    """What each way takes in each workload."""
    results = {}
    for workload in workloads:
        job, strategy_runs = turns.prepare_job(server, workload, scale), StrategyRuns()
        number, most = 0, LEARNING + repeats
        while number < most:
            began = time.perf_counter()
            for way, settings in _in_turn(number):
                seconds, strategy = run(replace(job, settings={**job.settings, **settings}))
                echo(f"  {workload.key}, {way}, {number + 1}: {seconds:.2f} s ({strategy})")
                if number >= LEARNING:
                    strategy_runs.seconds[way].append(seconds)
                    strategy_runs.chosen_strategies.extend([strategy] if way == AUTO else [])
            number += 1
            if number == LEARNING and time.perf_counter() - began < SHORT_SECONDS:
                most = LEARNING + OFTENER * repeats
        results[workload.key] = strategy_runs
    return results


def _in_turn(number: int) -> Sequence[tuple[str, Mapping[str, object]]]:
    """The ways, of which another one is the first in each turn."""
    ways, first = [*WAYS.items()], number % len(WAYS)
    return [*ways[first:], *ways[:first]]


def run(job: Job) -> tuple[float, str]:
    """Do a job in a session of its own: its seconds, and the strategy that it has followed at
    last.
    """
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
    """A table of the medians."""
    lines = [
        f"| workload | chosen | {' | '.join(WAYS)} | chosen against the best |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, strategy_runs in results.items():
        strategy = ", ".join(sorted({*strategy_runs.chosen_strategies}))
        times = " | ".join(f"{seconds:.1f} s" for seconds in strategy_runs.medians.values())
        ratio_text = (
            f"{strategy_runs.ratio:.2f}{'' if strategy_runs.ratio <= MOST else ' (too much)'}"
        )
        lines.append(f"| {key}: {titles[key]} | {strategy} | {times} | {ratio_text} |")
    return "\n".join(lines)
