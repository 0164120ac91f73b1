"""Runtime statistics of a run: times of visits, evaluations and hops, and compiled code.

A visit costs its worker the training time, and its hop: the transactions around it. If a visit is
shorter than its hop, visits that follow on the same worker share one hop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.platform.statements import format_megabytes
from cerebro_plpy.platform.visit_protocol import BatchResult, Worker
from cerebro_plpy.run.log.form_timings import FormTimings, Timings
from cerebro_plpy.run.state.config_state import ConfigState
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit, choose_limit

CANDIDATE_BYTES = 64 << 20
"""Bytes of states that a trainer may hold because one of them may be the best."""


def describe_shards(shards: Sequence[Mapping[str, Any]]) -> str:
    """Describe how a program trains that does not fit into the memory of its trainer.

    >>> text = describe_shards([{"state_bytes": 3_000_000}, {"state_bytes": 1_000_000}])
    >>> print(text.replace("; ", "\\n"))
    do not fit into trainer_memory_mb: they train in 2 shards of up to 3.0 MB in turn
    all 4.0 MB lie in a file
    """
    sizes = [shard["state_bytes"] for shard in shards]
    return (
        f"do not fit into trainer_memory_mb: they train in {count_nouns(len(sizes), 'shard')} of "
        "up to "
        f"{format_megabytes(max(sizes))} MB in turn; all {format_megabytes(sum(sizes))} MB lie "
        "in a file"
    )


class RuntimeStats:
    """The statistics of one run, by compiled code.

    Args:
        timings: timings of execution modes from earlier runs.
        commit_seconds: time that trained visits may wait for their commit.
    """

    def __init__(self, timings: Timings, commit_seconds: float) -> None:
        self._timings = timings
        self._commit_seconds = commit_seconds
        self._notes: set[object] = set()  # subjects of the notes so far
        self.hop_seconds = math.inf  # shortest hop of a state; infinite if unknown
        self._visit_seconds: dict[str, float] = {}  # shortest visit
        self._evaluation_seconds: dict[str, float] = {}  # shortest evaluation within a batch
        self._state_bytes: dict[str, int] = {}
        self.compiled: dict[int, set[str]] = {}  # by worker, in this run

    def timings_of(self, config: ConfigState, worker: Worker) -> FormTimings:
        """Return the known timings of a configuration's program on a worker."""
        return self._timings.get(config.timing_key(worker))

    def batch_limit(self, config: ConfigState, states: int = 1) -> BatchLimit:
        """Return how many visits of a configuration should share one job.

        Evaluations belong to a batch if several fit into it.

        Args:
            states: number of configurations that make the visits together.
        """
        visit_seconds = self._visit_seconds.get(config.compilation)
        if visit_seconds is None or self.hop_seconds == math.inf:
            return BatchLimit(1)
        evaluation_seconds = self._evaluation_seconds.get(config.compilation)
        return choose_limit(
            visit_seconds * states,
            evaluation_seconds and evaluation_seconds * states,
            self.hop_seconds * states,
            self._commit_seconds,
        )

    def max_candidates(self, config: ConfigState) -> int:
        """Return how many states a trainer may hold besides the newest one."""
        return CANDIDATE_BYTES // self._state_bytes.get(config.compilation, CANDIDATE_BYTES + 1)

    def add(self, worker: Worker, config: ConfigState, result: BatchResult) -> None:
        """Add the times of visits. The shortest ones count: others waited, or compiled."""
        code = config.compilation
        self.compiled.setdefault(worker.number, set()).add(code)
        for _, measured in result.evaluations:
            shortest = self._evaluation_seconds.get(code, math.inf)
            self._evaluation_seconds[code] = min(measured["seconds"], shortest)
        for seconds in _list_visit_seconds(config, result):
            shortest = self._visit_seconds.get(code, math.inf)
            self._visit_seconds[code] = min(seconds, shortest)
        for _, measured in result.training:
            self._state_bytes[code] = measured["state_bytes"]
            if measured["timings"]:
                self._timings.add(config.timing_key(worker), measured["timings"])

    def add_hop(self, seconds: float) -> None:
        """Add the time that storing a state took its worker."""
        self.hop_seconds = min(self.hop_seconds, max(0.0, seconds))

    def take_notes(self, config: ConfigState, result: BatchResult) -> list[str]:
        """Return the notes about visits that the caller has not got yet."""
        notes = []
        for subject, text in _notes_of(config, result):
            if subject not in self._notes:
                self._notes.add(subject)
                notes.append(text)
        return notes


def _list_visit_seconds(config: ConfigState, result: BatchResult) -> list[float]:
    """Return the times of training visits; of a config that learns at the end of an epoch, means.

    Its other visits only collect rows.
    """
    if not config.learns_from_whole_epochs:
        return [measured["seconds"] for _, measured in result.training]
    by_epoch: dict[int, list[float]] = {}
    for visit, measured in result.training:
        by_epoch.setdefault(visit.epoch, []).append(measured["seconds"])
    return [fmean(seconds) for seconds in by_epoch.values()]


def _notes_of(config: ConfigState, result: BatchResult) -> Iterator[tuple[object, str]]:
    """Yield the notes about visits, each with a subject that it is reported once for."""
    configs = f"mst_key={config.mst_key} and similar configurations"
    for _, measured in result.training:
        if measured["fallback"]:
            text = f"{configs} need Keras' own, slower loop: {measured['fallback']}"
            yield config.program, text
        shards = measured["shards"]
        if shards:
            yield (config.program, len(shards)), f"{configs} {describe_shards(shards)}"
        for warning in measured["warnings"]:
            yield warning, f"mst_key={config.mst_key}: {warning}"
