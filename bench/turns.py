"""Measures one workload: everything is made ready and tuned, then all contenders take turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from bench import place, trainers
from bench.contenders import Attempt, Contender, attempt, bare_loops, process
from bench.job import Job
from bench.measure import Usage, Watch
from bench.place import Place
from bench.weights import drawn
from bench.workloads import Workload

Say = Callable[[str], None]
Settings = dict[str, dict[str, Any]]
PRODUCT = "cerebro_db"
CLEARLY = 1.5
"""A peer that took so many times as long as the best is out of the race."""
HOPELESS = 4.0
LEAST_LIMIT = 60.0
"""A peer is stopped after so many times the best one's time, and after so many seconds at the
earliest.
"""


@dataclass(kw_only=True)
class Measured:
    """All attempts of a workload, by contender and repetition."""

    workload: Workload
    job: Job
    scale: str
    settings: Settings
    attempts: dict[str, dict[int, Attempt]] = field(default_factory=dict)
    packing: dict[int, Usage] = field(default_factory=dict)
    bare: dict[int, float] = field(default_factory=dict)

    def walls(self, name: str) -> dict[int, float]:
        """Seconds of the attempts of a contender that succeeded, by repetition."""
        return {
            n: a.usage.wall for n, a in self.attempts.get(name, {}).items() if a.result is not None
        }


def ready(at: Place, workload: Workload, scale: str) -> Job:
    """The job of a workload, its tables made and packed."""
    job = place.load(at, workload, scale, drawn(workload.architectures, at.folder))
    with at.session() as session:
        place.pack(session, job)
    return job


def tuned(at: Place, job: Job, contenders: Sequence[Contender], say: Say) -> Settings:
    """The best settings of each framework among the peers, found side by side on a core each."""
    frameworks = sorted({c.framework for c in contenders if not c.ours})
    found: Settings = {}
    with ThreadPoolExecutor(2) as pool:
        asked = {
            f: pool.submit(process, at, "bench.tuning", replace(job, framework=f))
            for f in frameworks
        }
        for framework, answer in asked.items():
            _, result, reason = answer.result()
            found[framework] = result.more["settings"] if result else {}
            say(f"  tuned {framework}: {found[framework] or reason}")
    return found


def measured(
    at: Place,
    workload: Workload,
    scale: str,
    contenders: Sequence[Contender],
    repeats: int,
    say: Say,
) -> Measured:
    """Let the contenders take turns, so that a change of the machine's mood meets all of them.

    A peer far behind the best one is stopped, and one that lost clearly in the first turn takes no
    other. Ours gets no trainer that an earlier attempt has left.
    """
    with trainers.forked(at):
        return _measured(at, workload, scale, contenders, repeats, say)


def _measured(
    at: Place,
    workload: Workload,
    scale: str,
    contenders: Sequence[Contender],
    repeats: int,
    say: Say,
) -> Measured:
    say(f"{workload.key}: {workload.title}")
    job = ready(at, workload, scale)
    done = Measured(
        workload=workload, job=job, scale=scale, settings=tuned(at, job, contenders, say)
    )
    for contender in (c for c in contenders if c.ours):
        # As the peers are tuned beforehand, so ours may find out beforehand which form of a program
        # is fastest.
        first = attempt(at, job, contender, {})
        say(f"  {contender.name}, first run, not counted: {_told(first)}")
    for number in range(repeats):
        done.packing[number] = _packing(at, job)
        say(f"  packing: {done.packing[number].wall:.2f} s")
        for contender in contenders:
            _take_turn(at, done, contender, number, say)
        _bare(at, job, done, number, [c.framework for c in contenders if c.ours], say)
    return done


def _take_turn(at: Place, done: Measured, contender: Contender, number: int, say: Say) -> None:
    peers = [name for name in done.attempts if not name.startswith(PRODUCT)]
    fastest = min((wall for name in peers for wall in done.walls(name).values()), default=None)
    first = done.attempts.get(contender.name, {}).get(0)
    if first is not None and not contender.ours and is_out(first, fastest):
        return
    limit = None if contender.ours or fastest is None else max(LEAST_LIMIT, HOPELESS * fastest)
    # Ours needs no settings: it finds them by itself.
    settings = {} if contender.ours else done.settings[contender.framework]
    tried = attempt(at, done.job, contender, settings, limit)
    done.attempts.setdefault(contender.name, {})[number] = tried
    say(f"  {contender.name}: {_told(tried)}")


def is_out(first: Attempt, fastest: float | None) -> bool:
    """Whether a peer takes no more turns after this first one, when the best peer took so many
    seconds.
    """
    return first.result is None or (fastest is not None and first.usage.wall > CLEARLY * fastest)


def _packing(at: Place, job: Job) -> Usage:
    with at.session() as session, Watch([at.pid]) as watch:
        place.pack(session, job)
    return watch.usage()


def _bare(
    at: Place, job: Job, done: Measured, number: int, frameworks: Sequence[str], say: Say
) -> None:
    """The bare loops of the fastest framework of ours."""
    for framework in frameworks:
        loops, reason = bare_loops(at, job, framework)
        if loops is not None:
            done.bare[number] = min(loops.seconds, done.bare.get(number, math.inf))
        told = f"{loops.seconds:.2f} s" if loops else reason
        say(f"  bare loops, {framework}: {told}")


def _told(tried: Attempt) -> str:
    text = f"{tried.usage.wall:.2f} s"
    return text if tried.result is not None else f"failed after {text}: {tried.reason}"


def middle(attempts: Mapping[int, Attempt]) -> Attempt | None:
    """The attempt with the middle wall time, of those that were broken down; None where none
    was.
    """
    known = sorted(
        (a for a in attempts.values() if a.phases is not None), key=lambda a: a.usage.wall
    )
    return known[len(known) // 2] if known else None
