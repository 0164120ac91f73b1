"""Where the time of a call of ours went, read from the durations that the server logged.

For each worker session the log says when each statement ended and how long it took; what a
statement is for can be told from the functions that it calls. Seconds by the clock are means over
the workers, so that they add up to the time of the call; CPU seconds of their trainers are sums.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from bench.measure import Course

PHASES = ("start-up", "data", "train", "compile", "hop", "evaluate", "orchestration", "idle", "end")
SHORT_GAP = 0.02
"""Seconds; a worker that has nothing to do for longer waits for a configuration, else for the
orchestrator.
"""

ENTRY = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \S+ \[(\d+)\] (?:\S+ )?LOG:  duration: ([\d.]+) ms  "
    r"statement: ",
    re.MULTILINE,
)
NEXT = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", re.MULTILINE)
TRAIN = '"job": "train"'
CONFIG = re.compile(r'"mst_key": (\d+)')
KINDS = (
    ("cerebro.trainer_start(", "start-up"),
    ("cerebro.dataset_open(", "data"),
    ("INSERT INTO cerebro.visit", "read state"),
    ("cerebro.state_chunks(", "write state"),
    ("cerebro.job_start(", "begin"),
    (TRAIN, "train"),
    ("INSERT INTO cerebro.evaluation", "evaluate"),
    ('"job": "evaluate"', "evaluate"),
    ("UPDATE cerebro.evaluation", "evaluate"),
    ("cerebro.metric_results(", "evaluate"),
    ("cerebro.job_finish(", "rest"),
)
PHASE_OF = {"read state": "hop", "write state": "hop"}


@dataclass(frozen=True)
class Step:
    """One statement of a worker; times in seconds since the epoch. A statement may train several
    visits.
    """

    pid: int
    began: float
    ended: float
    kind: str
    config: int | None = None
    visits: int = 1


def steps(log: str) -> list[Step]:
    """The statements in a log, as far as they belong to a worker's work, in the order of their
    ends.

    A visit that is begun while the state before it is still to be stored is trained from that
    statement on to the end of the one that waits for it, whatever is stored in between.
    """
    found: list[Step] = []
    begun: dict[int, Step] = {}
    for step in _statements(log):
        if step.kind == "begin":
            begun[step.pid] = step
            found.append(replace(step, kind="read state", config=None))
        elif step.pid not in begun:
            found += [step] if step.kind != "rest" else []
        elif step.kind in ("rest", "train"):
            first = begun.pop(step.pid)
            visits = 1 + (step.visits if step.kind == "train" else 0)
            found.append(
                replace(step, began=first.ended, kind="train", config=first.config, visits=visits)
            )
    return found


def _statements(log: str) -> Iterator[Step]:
    for entry in ENTRY.finditer(log):
        after = NEXT.search(log, entry.end())
        text = log[entry.end() : after.start() if after else len(log)]
        kind = next((kind for mark, kind in KINDS if mark in text), None)
        if kind is not None:
            ended = datetime.strptime(entry[1], "%Y-%m-%d %H:%M:%S.%f").timestamp()
            config = CONFIG.search(text) if kind in ("train", "begin") else None
            number = int(config[1]) if config else None
            visits = max(1, text.count(TRAIN))
            yield Step(int(entry[2]), ended - float(entry[3]) / 1000, ended, kind, number, visits)


@dataclass(frozen=True)
class Stretch:
    """What a worker did from one time to another."""

    pid: int
    phase: str
    began: float
    ended: float


def broken_down(
    found: Sequence[Step], began: float, ended: float, training: float | None = None
) -> dict[str, float]:
    """Seconds by phase, of a call between these times; all zero where no worker's statement was
    logged.

    A visit reads its state and trains in one statement. Where the seconds of training are known,
    summed over all visits, the rest of what these statements usually take counts as part of the
    hop.
    """
    total = _sums(found, began, ended, lambda stretch: stretch.ended - stretch.began)
    workers = max(1, len(_workers(found)))
    return _read_apart(
        {phase: seconds / workers for phase, seconds in total.items()}, _reading(total, training)
    )


def cpu_broken_down(
    found: Sequence[Step],
    began: float,
    ended: float,
    training: float,
    courses: Mapping[int, Sequence[Course]],
) -> dict[str, float]:
    """CPU seconds of the trainers of all workers by phase, from the courses of what they used."""
    walls = _sums(found, began, ended, lambda stretch: stretch.ended - stretch.began)
    total = _sums(
        found,
        began,
        ended,
        lambda s: sum(
            _at(s.ended, course) - _at(s.began, course) for course in courses.get(s.pid, ())
        ),
    )
    return _read_apart(total, _reading(walls, training))


def _at(time: float, course: Course) -> float:
    return float(np.interp(time, *course))


def _workers(found: Iterable[Step]) -> set[int]:
    return {step.pid for step in found if step.kind == "train"}


def _sums(
    found: Sequence[Step], began: float, ended: float, taken: Callable[[Stretch], float]
) -> dict[str, float]:
    usual = usual_seconds(found)
    total = dict.fromkeys(PHASES, 0.0)
    for pid in _workers(found):
        for stretch in _of_worker([step for step in found if step.pid == pid], usual, began, ended):
            total[stretch.phase] += taken(stretch)
    return total


def _reading(walls: Mapping[str, float], training: float | None) -> float:
    """What part of the time that counts as training was none: the states were read in it."""
    if training is None or not walls["train"]:
        return 0.0
    return max(0.0, 1 - training / walls["train"])


def _read_apart(total: Mapping[str, float], part: float) -> dict[str, float]:
    reading = part * total["train"]
    return {**total, "train": total["train"] - reading, "hop": total["hop"] + reading}


def usual_seconds(found: Iterable[Step]) -> dict[int | None, float]:
    """By configuration, the (lower) median time of a visit in its training statements: what it
    takes when nothing is new."""
    by_config = defaultdict(list)
    for step in found:
        if step.kind == "train":
            by_config[step.config].append((step.ended - step.began) / step.visits)
    return {config: statistics.median_low(seconds) for config, seconds in by_config.items()}


def _of_worker(
    own: list[Step], usual: dict[int | None, float], began: float, ended: float
) -> Iterable[Stretch]:
    pid = own[0].pid
    first = next(index for index, step in enumerate(own) if step.kind != "start-up")
    free = own[first].began
    yield Stretch(pid, "start-up", began, free)
    for step in own[first:]:
        if step.began > free:
            yield Stretch(
                pid, "orchestration" if step.began - free < SHORT_GAP else "idle", free, step.began
            )
            free = step.began
        if step.kind == "train":
            trains = max(free, step.ended - step.visits * usual[step.config])
            yield Stretch(pid, "compile", free, trains)
            yield Stretch(pid, "train", trains, step.ended)
        else:
            yield Stretch(pid, PHASE_OF.get(step.kind, step.kind), free, step.ended)
        free = step.ended
    yield Stretch(pid, "end", free, ended)
