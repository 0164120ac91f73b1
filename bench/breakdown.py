"""Break the time of our calls down by phases, with the durations in the server's log.

The log contains the end and the duration of each statement of a worker's session. The functions
that a statement calls reveal its purpose. Seconds are means over the workers, so that they add up
to the time of the call; CPU seconds of the trainers are sums.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from bench.measure import CpuHistory

PHASES = ("start-up", "data", "train", "compile", "hop", "evaluate", "orchestration", "idle", "end")
SHORT_GAP = 0.02
"""Seconds; a worker that waits longer waits for a configuration, else for the orchestrator."""

ENTRY = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \S+ \[(\d+)\] (?:\S+ )?LOG:  duration: ([\d.]+) ms  "
    r"statement: ",
    re.MULTILINE,
)
NEXT = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", re.MULTILINE)
TRAIN = '"job": "train"'
CONFIG = re.compile(r'"mst_key": (\d+)')
KINDS = (
    ("cerebro_internal.trainer_start(", "start-up"),
    ("cerebro_internal.dataset_open(", "data"),
    ("INSERT INTO cerebro.visit", "read state"),
    ("cerebro_internal.state_chunks(", "write state"),
    ("cerebro_internal.job_start(", "begin"),
    (TRAIN, "train"),
    ("INSERT INTO cerebro.evaluation", "evaluate"),
    ('"job": "evaluate"', "evaluate"),
    ("UPDATE cerebro.evaluation", "evaluate"),
    ("cerebro_internal.metric_results(", "evaluate"),
    ("cerebro_internal.job_finish(", "rest"),
)
PHASE_OF = {"read state": "hop", "write state": "hop"}


@dataclass(frozen=True)
class Step:
    """A statement of a worker; times are in seconds since the epoch."""

    pid: int
    start: float
    end: float
    kind: str
    config: int | None = None
    visits: int = 1


def read_steps(log: str) -> list[Step]:
    """Return the statements of workers in a log, in the order of their ends.

    A visit may start while the previous state is still to be stored. It trains from that statement
    to the end of the one that waits for it, even if something is stored in between.
    """
    steps: list[Step] = []
    open_visits: dict[int, Step] = {}
    for step in _parse_log(log):
        if step.kind == "begin":
            open_visits[step.pid] = step
            steps.append(replace(step, kind="read state", config=None))
        elif step.pid not in open_visits:
            steps += [step] if step.kind != "rest" else []
        elif step.kind in ("rest", "train"):
            first = open_visits.pop(step.pid)
            visits = 1 + (step.visits if step.kind == "train" else 0)
            steps.append(
                replace(step, start=first.end, kind="train", config=first.config, visits=visits)
            )
    return steps


def _parse_log(log: str) -> Iterator[Step]:
    for entry in ENTRY.finditer(log):
        next_entry = NEXT.search(log, entry.end())
        text = log[entry.end() : next_entry.start() if next_entry else len(log)]
        kind = next((kind for mark, kind in KINDS if mark in text), None)
        if kind is not None:
            end = datetime.strptime(entry[1], "%Y-%m-%d %H:%M:%S.%f").timestamp()
            config = CONFIG.search(text) if kind in ("train", "begin") else None
            number = int(config[1]) if config else None
            visits = max(1, text.count(TRAIN))
            yield Step(int(entry[2]), end - float(entry[3]) / 1000, end, kind, number, visits)


@dataclass(frozen=True)
class Stretch:
    """A time in which a worker was in one phase."""

    pid: int
    phase: str
    start: float
    end: float


def break_down(
    steps: Sequence[Step], start: float, end: float, training: float | None = None
) -> dict[str, float]:
    """Return the seconds of a call by phase; all are zero if the log has no worker's statement.

    A visit reads its state and trains in one statement. If the training seconds of all visits are
    known, the other part of these statements' usual time counts as part of the hop.
    """
    totals = _sum_phases(steps, start, end, lambda stretch: stretch.end - stretch.start)
    workers = max(1, len(_find_workers(steps)))
    return _separate_reading(
        {phase: seconds / workers for phase, seconds in totals.items()},
        _find_reading_share(totals, training),
    )


def break_down_cpu(
    steps: Sequence[Step],
    start: float,
    end: float,
    training: float,
    histories: Mapping[int, Sequence[CpuHistory]],
) -> dict[str, float]:
    """Return the CPU seconds of all workers' trainers by phase, from their CPU histories."""
    walls = _sum_phases(steps, start, end, lambda stretch: stretch.end - stretch.start)
    totals = _sum_phases(
        steps,
        start,
        end,
        lambda s: sum(
            _interpolate(s.end, history) - _interpolate(s.start, history)
            for history in histories.get(s.pid, ())
        ),
    )
    return _separate_reading(totals, _find_reading_share(walls, training))


def _interpolate(time: float, history: CpuHistory) -> float:
    return float(np.interp(time, *history))


def _find_workers(steps: Iterable[Step]) -> set[int]:
    return {step.pid for step in steps if step.kind == "train"}


def _sum_phases(
    steps: Sequence[Step], start: float, end: float, measure: Callable[[Stretch], float]
) -> dict[str, float]:
    usual_seconds = find_usual_seconds(steps)
    totals = dict.fromkeys(PHASES, 0.0)
    for pid in _find_workers(steps):
        for stretch in _split_worker(
            [step for step in steps if step.pid == pid], usual_seconds, start, end
        ):
            totals[stretch.phase] += measure(stretch)
    return totals


def _find_reading_share(walls: Mapping[str, float], training: float | None) -> float:
    """Return the share of the training time in which states were read."""
    if training is None or not walls["train"]:
        return 0.0
    return max(0.0, 1 - training / walls["train"])


def _separate_reading(totals: Mapping[str, float], share: float) -> dict[str, float]:
    reading = share * totals["train"]
    return {**totals, "train": totals["train"] - reading, "hop": totals["hop"] + reading}


def find_usual_seconds(steps: Iterable[Step]) -> dict[int | None, float]:
    """Return the (lower) median time of a visit without compilation, by configuration."""
    by_config = defaultdict(list)
    for step in steps:
        if step.kind == "train":
            by_config[step.config].append((step.end - step.start) / step.visits)
    return {config: statistics.median_low(seconds) for config, seconds in by_config.items()}


def _split_worker(
    worker_steps: list[Step], usual_seconds: dict[int | None, float], start: float, end: float
) -> Iterable[Stretch]:
    pid = worker_steps[0].pid
    first = next(index for index, step in enumerate(worker_steps) if step.kind != "start-up")
    free_since = worker_steps[first].start
    yield Stretch(pid, "start-up", start, free_since)
    for step in worker_steps[first:]:
        if step.start > free_since:
            yield Stretch(
                pid,
                "orchestration" if step.start - free_since < SHORT_GAP else "idle",
                free_since,
                step.start,
            )
            free_since = step.start
        if step.kind == "train":
            trains = max(free_since, step.end - step.visits * usual_seconds[step.config])
            yield Stretch(pid, "compile", free_since, trains)
            yield Stretch(pid, "train", trains, step.end)
        else:
            yield Stretch(pid, PHASE_OF.get(step.kind, step.kind), free_since, step.end)
        free_since = step.end
    yield Stretch(pid, "end", free_since, end)
