"""Measures one workload: everything is made ready and tuned, then all contenders take turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from bench import bench_server, trainers
from bench.bench_server import BenchServer, Echo
from bench.contenders import Attempt, Contender, run_attempt, run_bare_loops, run_module
from bench.job import Job
from bench.measure import Usage, Watch
from bench.weights import draw_weights
from bench.workloads import Workload

Settings = dict[str, dict[str, Any]]
PRODUCT = "cerebro_db"
CLEARLY = 1.5
"""A peer that took this many times as long as the best one takes no more turns."""
HOPELESS = 4.0
LEAST_LIMIT = 60.0
"""A peer is stopped after so many times the best one's time, and after so many seconds at the
earliest.
"""


@dataclass(kw_only=True)
class WorkloadResults:
    """All attempts at a workload, by contender and repetition."""

    workload: Workload
    job: Job
    scale: str
    settings: Settings
    attempts: dict[str, dict[int, Attempt]] = field(default_factory=dict)
    packing: dict[int, Usage] = field(default_factory=dict)
    bare: dict[int, float] = field(default_factory=dict)

    def list_walls(self, name: str) -> dict[int, float]:
        """Return the seconds of a contender's successful attempts, by repetition."""
        return {
            n: a.usage.wall for n, a in self.attempts.get(name, {}).items() if a.result is not None
        }


def prepare_job(server: BenchServer, workload: Workload, scale: str) -> Job:
    """Create and pack the tables of a workload; return its job."""
    job = bench_server.load(
        server, workload, scale, draw_weights(workload.architectures, server.folder)
    )
    with server.session() as session:
        bench_server.pack(session, job)
    return job


def tune_peers(
    server: BenchServer, job: Job, contenders: Sequence[Contender], echo: Echo
) -> Settings:
    """Return the best settings of the peers' frameworks, which are tuned on one core each."""
    frameworks = sorted({c.framework for c in contenders if not c.ours})
    settings: Settings = {}
    with ThreadPoolExecutor(2) as pool:
        futures = {
            f: pool.submit(run_module, server, "bench.tuning", replace(job, framework=f))
            for f in frameworks
        }
        for framework, answer in futures.items():
            _, result, reason = answer.result()
            settings[framework] = result.more["settings"] if result else {}
            echo(f"  tuned {framework}: {settings[framework] or reason}")
    return settings


def measure_workload(
    server: BenchServer,
    workload: Workload,
    scale: str,
    contenders: Sequence[Contender],
    repeats: int,
    echo: Echo,
) -> WorkloadResults:
    """Let the contenders take turns, so that a change of the machine's speed affects all of them.

    A peer far behind the best one is stopped, and takes no more turns after a clear loss in the
    first one. Ours gets no idle trainers of earlier attempts.
    """
    with trainers.forbid_kept_trainers(server):
        return _measure_in_turns(server, workload, scale, contenders, repeats, echo)


def _measure_in_turns(
    server: BenchServer,
    workload: Workload,
    scale: str,
    contenders: Sequence[Contender],
    repeats: int,
    echo: Echo,
) -> WorkloadResults:
    echo(f"{workload.key}: {workload.title}")
    job = prepare_job(server, workload, scale)
    results = WorkloadResults(
        workload=workload,
        job=job,
        scale=scale,
        settings=tune_peers(server, job, contenders, echo),
    )
    for contender in (c for c in contenders if c.ours):
        # Ours times the forms of its programs beforehand, as the peers are tuned beforehand.
        first = run_attempt(server, job, contender, {})
        echo(f"  {contender.name}, first run, not counted: {_describe(first)}")
    for number in range(repeats):
        results.packing[number] = _measure_packing(server, job)
        echo(f"  packing: {results.packing[number].wall:.2f} s")
        for contender in contenders:
            _take_turn(server, results, contender, number, echo)
        _measure_bare_loops(
            server, job, results, number, [c.framework for c in contenders if c.ours], echo
        )
    return results


def _take_turn(
    server: BenchServer,
    results: WorkloadResults,
    contender: Contender,
    number: int,
    echo: Echo,
) -> None:
    peers = [name for name in results.attempts if not name.startswith(PRODUCT)]
    fastest = min(
        (wall for name in peers for wall in results.list_walls(name).values()), default=None
    )
    first = results.attempts.get(contender.name, {}).get(0)
    if first is not None and not contender.ours and is_out(first, fastest):
        return
    limit = None if contender.ours or fastest is None else max(LEAST_LIMIT, HOPELESS * fastest)
    # Ours finds its settings by itself.
    settings = {} if contender.ours else results.settings[contender.framework]
    attempt = run_attempt(server, results.job, contender, settings, limit)
    results.attempts.setdefault(contender.name, {})[number] = attempt
    echo(f"  {contender.name}: {_describe(attempt)}")


def is_out(first: Attempt, fastest: float | None) -> bool:
    """Return whether a peer takes no more turns after its first one.

    Args:
        fastest: seconds of the best peer.
    """
    return first.result is None or (fastest is not None and first.usage.wall > CLEARLY * fastest)


def _measure_packing(server: BenchServer, job: Job) -> Usage:
    with server.session() as session, Watch([server.pid]) as watch:
        bench_server.pack(session, job)
    return watch.usage()


def _measure_bare_loops(
    server: BenchServer,
    job: Job,
    results: WorkloadResults,
    number: int,
    frameworks: Sequence[str],
    echo: Echo,
) -> None:
    """Measure the bare loops of our fastest framework."""
    for framework in frameworks:
        loops, reason = run_bare_loops(server, job, framework)
        if loops is not None:
            results.bare[number] = min(loops.seconds, results.bare.get(number, math.inf))
        text = f"{loops.seconds:.2f} s" if loops else reason
        echo(f"  bare loops, {framework}: {text}")


def _describe(attempt: Attempt) -> str:
    text = f"{attempt.usage.wall:.2f} s"
    return text if attempt.result is not None else f"failed after {text}: {attempt.reason}"


def find_middle_attempt(attempts: Mapping[int, Attempt]) -> Attempt | None:
    """Return the attempt with the median time of those with a breakdown; None if none has one."""
    measured = sorted(
        (a for a in attempts.values() if a.phases is not None), key=lambda a: a.usage.wall
    )
    return measured[len(measured) // 2] if measured else None
