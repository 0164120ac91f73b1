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
from bench.job import Job
from bench.place import Place
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
class Tried:
    """Seconds of runs by each way, as the log has them, and which strategies were chosen."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    chosen: list[str] = field(default_factory=list)

    @property
    def medians(self) -> dict[str, float]:
        """What each way took."""
        return {way: median(found) for way, found in self.seconds.items()}

    @property
    def ratio(self) -> float:
        """What was chosen against the best of all."""
        found = self.medians
        return found[AUTO] / min(found.values())


def measured(
    at: Place, workloads: Sequence[Workload], scale: str, repeats: int, say: Callable[[str], None]
) -> dict[str, Tried]:
    """What each way takes in each workload."""
    found = {}
    for workload in workloads:
        job, tried = turns.ready(at, workload, scale), Tried()
        number, most = 0, LEARNING + repeats
        while number < most:
            began = time.perf_counter()
            for way, named in _in_turn(number):
                seconds, chosen = run(replace(job, settings={**job.settings, **named}))
                say(f"  {workload.key}, {way}, {number + 1}: {seconds:.2f} s ({chosen})")
                if number >= LEARNING:
                    tried.seconds[way].append(seconds)
                    tried.chosen.extend([chosen] if way == AUTO else [])
            number += 1
            if number == LEARNING and time.perf_counter() - began < SHORT_SECONDS:
                most = LEARNING + OFTENER * repeats
        found[workload.key] = tried
    return found


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
            seconds, chosen = cursor.fetchone()  # type: ignore[misc]
    finally:
        session.close()
    return float(seconds), str(chosen)


def report(found: Mapping[str, Tried], titles: Mapping[str, str]) -> str:
    """A table of the medians."""
    lines = [
        f"| workload | chosen | {' | '.join(WAYS)} | chosen against the best |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, tried in found.items():
        chosen = ", ".join(sorted({*tried.chosen}))
        times = " | ".join(f"{seconds:.1f} s" for seconds in tried.medians.values())
        told = f"{tried.ratio:.2f}{'' if tried.ratio <= MOST else ' (too much)'}"
        lines.append(f"| {key}: {titles[key]} | {chosen} | {times} | {told} |")
    return "\n".join(lines)
