"""Where the time of a call of ours went, read from the durations that the server logged.

For each worker session the log says when each statement ended and how long it took; what a statement is for
can be told from the functions that it calls. Seconds are means over the workers, so that they add up to the
time of the call.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

PHASES = ("start-up", "data", "train", "compile", "hop", "evaluate", "orchestration", "idle", "end")
SHORT_GAP = 0.02
"""Seconds; a worker that has nothing to do for longer waits for a configuration, else for the orchestrator."""

ENTRY = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \S+ \[(\d+)\] (?:\S+ )?LOG:  duration: ([\d.]+) ms  statement: ",
    re.MULTILINE,
)
NEXT = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", re.MULTILINE)
CONFIG = re.compile(r'"mst_key": (\d+)')
KINDS = (
    ("cerebro.trainer_start(", "start-up"),
    ("cerebro.dataset_open(", "data"),
    ("INSERT INTO cerebro.visit", "read state"),
    ("cerebro.state_chunks(", "write state"),
    ('"job": "train"', "train"),
    ("INSERT INTO cerebro.evaluation", "evaluate"),
    ('"job": "evaluate"', "evaluate"),
    ("UPDATE cerebro.evaluation", "evaluate"),
    ("cerebro.metric_results(", "evaluate"),
)
PHASE_OF = {"read state": "hop", "write state": "hop"}


@dataclass(frozen=True)
class Step:
    """One statement of a worker; times in seconds since the epoch."""

    pid: int
    began: float
    ended: float
    kind: str
    config: int | None = None


def steps(log: str) -> list[Step]:
    """The statements in a log, as far as they belong to a worker's work, in the order of their ends."""
    found = []
    for entry in ENTRY.finditer(log):
        after = NEXT.search(log, entry.end())
        text = log[entry.end() : after.start() if after else len(log)]
        kind = next((kind for mark, kind in KINDS if mark in text), None)
        if kind is not None:
            ended = datetime.strptime(entry[1], "%Y-%m-%d %H:%M:%S.%f").timestamp()
            config = CONFIG.search(text) if kind == "train" else None
            number = int(config[1]) if config else None
            found.append(Step(int(entry[2]), ended - float(entry[3]) / 1000, ended, kind, number))
    return found


def broken_down(found: Sequence[Step], began: float, ended: float, training: float | None = None) -> dict[str, float]:
    """Seconds by phase, of a call between these times; all zero where no worker's statement was logged.

    A visit reads its state and trains in one statement. Where the seconds of training are known, summed over all
    visits, the rest of what these statements usually take counts as part of the hop.
    """
    workers = {step.pid for step in found if step.kind == "train"}
    total = dict.fromkeys(PHASES, 0.0)
    usual = usual_seconds(found)
    for pid in workers:
        for phase, seconds in _of_worker([s for s in found if s.pid == pid], usual, began, ended):
            total[phase] += seconds / len(workers)
    if training is not None and workers:
        reading = max(0.0, total["train"] - training / len(workers))
        total["train"] -= reading
        total["hop"] += reading
    return total


def usual_seconds(found: Iterable[Step]) -> dict[int | None, float]:
    """By configuration, the median time of its training statements: what a visit takes when nothing is new."""
    by_config = defaultdict(list)
    for step in found:
        if step.kind == "train":
            by_config[step.config].append(step.ended - step.began)
    return {config: statistics.median(seconds) for config, seconds in by_config.items()}


def visit_seconds(found: Iterable[Step], alone: bool) -> float:
    """Median time from the begin of a visit to that of the next one of the same worker; where a configuration
    is `alone`, of any worker. A worker's first visits, in which programs are compiled, and its last are left out."""
    begins = defaultdict(list)
    for step in found:
        if step.kind == "read state":
            begins[0 if alone else step.pid].append(step.began)
    seconds = [b - a for times in begins.values() for a, b in itertools.pairwise(sorted(times)[2:])]
    return statistics.median(seconds)


def pieces(found: Iterable[Step]) -> dict[str, float]:
    """What visits consist of: median seconds of each kind of statement, and from the end of one to the next."""
    times, ended = defaultdict(list), dict[int, float]()
    for step in sorted(found, key=lambda step: step.began):
        times[step.kind].append(step.ended - step.began)
        if step.kind in ("read state", "train", "write state"):
            times["between two"].append(max(0.0, step.began - ended.get(step.pid, step.began)))
        ended[step.pid] = step.ended
    return {kind: statistics.median(seconds) for kind, seconds in times.items()}


def _of_worker(
    own: list[Step], usual: dict[int | None, float], began: float, ended: float
) -> Iterable[tuple[str, float]]:
    first = next(index for index, step in enumerate(own) if step.kind != "start-up")
    yield "start-up", own[first].began - began
    free = own[first].began
    for step in own[first:]:
        gap = max(0.0, step.began - free)
        yield ("orchestration" if gap < SHORT_GAP else "idle"), gap
        seconds = step.ended - max(step.began, free)
        if step.kind == "train":
            training = min(seconds, usual[step.config])
            yield "train", training
            yield "compile", seconds - training
        else:
            yield PHASE_OF.get(step.kind, step.kind), seconds
        free = step.ended
    yield "end", ended - free
