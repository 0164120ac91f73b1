"""A whole search beside Optuna and Ray Tune: the same configurations and rows, successive halving
by each, in turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench import tables
from bench.bench_server import BenchServer
from bench.contenders import FRAMEWORKS, OURS, Attempt, Contender, run_attempt
from bench.ratios import Span, ratios
from bench.turns import prepare_job, tune_peers
from bench.workloads import WORKLOADS, Workload

SEARCH: Mapping[str, Any] = {
    "search": "asha",
    "search_params": '{"eta": 3}',
    "metrics_compute_frequency": 1,
}
"""What ours is told; the peers have the same first rung, of one epoch, and the same share that goes
on.
"""
PEERS = tuple(
    Contender(
        name=f"{name}, {framework}", module=f"bench.{module}", framework=framework, processes=2
    )
    for name, module in (
        ("Optuna, SuccessiveHalvingPruner", "optuna_search"),
        ("Ray Tune, ASHA", "ray_search"),
    )
    for framework in FRAMEWORKS
)
TIMES = 9
"""Of the epochs of workload B, two: 18."""
Echo = Callable[[str], None]
Attempts = Mapping[str, Mapping[int, Attempt]]


def workload() -> Workload:
    """Small networks over 20 numbers, with more epochs."""
    return replace(
        WORKLOADS["B"], key="Bsearch", epochs=TIMES * WORKLOADS["B"].epochs, small_epochs=TIMES
    )


def measure_search_job(server: BenchServer, scale: str, repeats: int, echo: Echo) -> Attempts:
    """Let all take turns; before the first, ours and its peers find out what is fastest, which does
    not count.
    """
    job = prepare_job(server, workload(), scale)
    settings = tune_peers(server, job, PEERS, echo)
    for contender in OURS:
        run_attempt(server, job, contender, SEARCH)
    found: dict[str, dict[int, Attempt]] = {}
    for number in range(repeats):
        for contender in (*OURS, *PEERS):
            chosen = SEARCH if contender.ours else settings[contender.framework]
            attempt = run_attempt(server, job, contender, chosen)
            found.setdefault(contender.name, {})[number] = attempt
            echo(f"  {contender.name}: {attempt.usage.wall:.2f} s {attempt.reason}")
    return found


def report(found: Attempts, scale: str) -> str:
    """A row for each contender, and our time against that of each; the best loss of any
    configuration beside it.
    """
    ours = min((each.name for each in OURS), key=lambda name: _middle(found[name]))
    rows = [_row(name, attempts, found[ours]) for name, attempts in found.items()]
    work = workload()
    what = (
        f"{len(work.configs)} configurations, {work.epochs_at(scale)} epochs, "
        f"{work.rows_at(scale):,} rows."
    )
    headings = ["", "wall s", f"time of {ours} / its", "best validation loss"]
    return "\n\n".join([what, tables.table(headings, rows)])


def _row(name: str, attempts: Mapping[int, Attempt], ours: Mapping[int, Attempt]) -> Sequence[str]:
    walls = _walls(attempts)
    if not walls:
        return [name, f"failed: {tables.plain(next(iter(attempts.values())).reason)}", "", ""]
    against = ratios(_walls(ours), walls)
    best = [
        min(loss for loss, _ in each.result.scores.values())
        for each in attempts.values()
        if each.result
    ]
    return [
        name,
        Span.from_values(list(walls.values())).text(),
        against.text() if against else "",
        Span.from_values(best).text(4),
    ]


def _walls(attempts: Mapping[int, Attempt]) -> dict[int, float]:
    return {number: each.usage.wall for number, each in attempts.items() if each.result is not None}


def _middle(attempts: Mapping[int, Attempt]) -> float:
    walls = list(_walls(attempts).values())
    return Span.from_values(walls).middle if walls else math.inf
