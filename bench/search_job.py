"""Compare a whole search with Optuna and Ray Tune.

All have the same configurations and rows, use successive halving, and take turns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench import tables
from bench.bench_server import BenchServer, Echo
from bench.contenders import FRAMEWORKS, OURS, Attempt, Contender, run_attempt
from bench.ratios import Span, compute_ratios
from bench.turns import prepare_job, tune_peers
from bench.workloads import WORKLOADS, Workload

SEARCH: Mapping[str, Any] = {
    "search": "asha",
    "search_params": '{"eta": 3}',
    "metrics_compute_frequency": 1,
}
"""Arguments of ours; the peers have the same first rung of one epoch and the same eta."""
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
"""Factor for the two epochs of workload B."""
Attempts = Mapping[str, Mapping[int, Attempt]]


def make_workload() -> Workload:
    """Return small networks over 20 numbers, with more epochs."""
    return replace(
        WORKLOADS["B"], key="Bsearch", epochs=TIMES * WORKLOADS["B"].epochs, small_epochs=TIMES
    )


def measure_search_job(server: BenchServer, scale: str, repeats: int, echo: Echo) -> Attempts:
    """Let all contenders take turns, after they have been tuned, which does not count."""
    job = prepare_job(server, make_workload(), scale)
    settings = tune_peers(server, job, PEERS, echo)
    for contender in OURS:
        run_attempt(server, job, contender, SEARCH)
    attempts: dict[str, dict[int, Attempt]] = {}
    for number in range(repeats):
        for contender in (*OURS, *PEERS):
            contender_settings = SEARCH if contender.ours else settings[contender.framework]
            attempt = run_attempt(server, job, contender, contender_settings)
            attempts.setdefault(contender.name, {})[number] = attempt
            echo(f"  {contender.name}: {attempt.usage.wall:.2f} s {attempt.reason}")
    return attempts


def report(attempts: Attempts, scale: str) -> str:
    """Return a table of the contenders' times, relative times and best losses."""
    ours = min(
        (contender.name for contender in OURS), key=lambda name: _find_median(attempts[name])
    )
    rows = [
        _make_row(name, contender_attempts, attempts[ours])
        for name, contender_attempts in attempts.items()
    ]
    work = make_workload()
    summary = (
        f"{len(work.configs)} configurations, {work.count_epochs(scale)} epochs, "
        f"{work.count_rows(scale):,} rows."
    )
    headings = ["", "wall s", f"time of {ours} / its", "best validation loss"]
    return "\n\n".join([summary, tables.format_table(headings, rows)])


def _make_row(
    name: str, attempts: Mapping[int, Attempt], ours: Mapping[int, Attempt]
) -> Sequence[str]:
    walls = _list_walls(attempts)
    if not walls:
        return [name, f"failed: {tables.escape_cell(next(iter(attempts.values())).reason)}", "", ""]
    against = compute_ratios(_list_walls(ours), walls)
    best = [
        min(loss for loss, _ in attempt.result.scores.values())
        for attempt in attempts.values()
        if attempt.result
    ]
    return [
        name,
        Span.from_values(list(walls.values())).text(),
        against.text() if against else "",
        Span.from_values(best).text(4),
    ]


def _list_walls(attempts: Mapping[int, Attempt]) -> dict[int, float]:
    return {
        number: attempt.usage.wall
        for number, attempt in attempts.items()
        if attempt.result is not None
    }


def _find_median(attempts: Mapping[int, Attempt]) -> float:
    walls = list(_list_walls(attempts).values())
    return Span.from_values(walls).middle if walls else math.inf
