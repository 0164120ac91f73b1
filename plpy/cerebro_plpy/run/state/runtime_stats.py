"""What a run learns from its visits beside their states: how long things take, and what the caller
should hear of.

A visit costs its worker what it trains, and the transactions around it: its hop. Where a visit is
shorter than that, those that follow on the same worker share one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from cerebro_plpy.platform.statements import format_megabytes
from cerebro_plpy.platform.visit_protocol import BatchResult, Worker
from cerebro_plpy.run.log.form_timings import FormTimings
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.state.config_state import ConfigTraining
from cerebro_plpy.run.workers.tasks import Storing
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit, choose_limit

HELD_BYTES = 64 << 20
"""What the states of a tour may take that its trainer holds because one of them may be the best."""


def in_shards(shards: Sequence[Mapping[str, Any]]) -> str:
    """How a program is trained that does not fit into the memory of its trainer.

    >>> words = in_shards([{"state_bytes": 3_000_000}, {"state_bytes": 1_000_000}])
    >>> print(words.replace("; ", "\\n"))
    do not fit into trainer_memory_mb: they train in 2 shards of up to 3.0 MB in turn
    all 4.0 MB lie in a file
    """
    sizes = [shard["state_bytes"] for shard in shards]
    return (
        f"do not fit into trainer_memory_mb: they train in {len(sizes)} shards of up to "
        f"{format_megabytes(max(sizes))} MB in turn; all {format_megabytes(sum(sizes))} MB lie "
        "in a file"
    )


class Measurements:
    """Of one run, and of earlier ones of the same programs. Training may wait `commit_seconds` for
    its commit.
    """

    def __init__(
        self,
        log: RunLog,
        note: Callable[[str], None],
        programs: Collection[str],
        commit_seconds: float,
    ) -> None:
        self._log, self._note = log, note
        self._timings = log.read_timings(sorted(programs))
        self._noted: set[object] = set()
        self._commit_seconds = commit_seconds
        self._hop = math.inf
        self._visits: dict[object, float] = {}  # by what is compiled for them
        self._evaluations: dict[object, float] = {}  # those within tours
        self._state_bytes: dict[object, int] = {}
        self.compiled: dict[int, set[str]] = {}
        """What workers have compiled in this run, by their numbers."""

    def forms(self, training: ConfigTraining, worker: Worker) -> FormTimings:
        """What is known of the forms of a configuration's program on a worker."""
        return self._timings.get(training.situation(worker))

    def together(self, training: ConfigTraining, states: int = 1) -> BatchLimit:
        """How many visits of a configuration are to be made in one job, as far as they can be,
        where it makes them of so many states; those of others for which the same is compiled take
        as long. An evaluation belongs to them where they are several."""
        if training.compilation not in self._visits or self._hop == math.inf:
            return BatchLimit(1)
        evaluation = self._evaluations.get(training.compilation)
        visits = self._visits[training.compilation] * states, evaluation and evaluation * states
        return choose_limit(*visits, self._hop * states, self._commit_seconds)

    def held(self, training: ConfigTraining) -> int:
        """How many states of a configuration its trainer may hold beside the newest."""
        return HELD_BYTES // self._state_bytes.get(training.compilation, HELD_BYTES + 1)

    def take(self, worker: Worker, training: ConfigTraining, trained: BatchResult) -> None:
        """Visits were trained. What took least counts: others waited, or compiled."""
        key = training.config.mst_key
        self.compiled.setdefault(worker.number, set()).add(training.compilation)
        for _, result in trained.evaluations:
            shortest = self._evaluations.get(training.compilation, math.inf)
            self._evaluations[training.compilation] = min(result["seconds"], shortest)
        for _, result in trained.training:
            shortest = self._visits.get(training.compilation, math.inf)
            self._visits[training.compilation] = min(result["seconds"], shortest)
            self._state_bytes[training.compilation] = result["state_bytes"]
            if result["timings"]:
                self._timings.add(training.situation(worker), result["timings"])
                self._log.log_timings(training.situation(worker), result["timings"])
            if result["fallback"]:
                slow = (
                    f"mst_key={key} and its like need Keras' own, slower loop: {result['fallback']}"
                )
                self._note_once(training.program, slow)
            if shards := result["shards"]:
                self._note_once(
                    (training.program, len(shards)),
                    f"mst_key={key} and its like {in_shards(shards)}",
                )
            for text in result["warnings"]:
                self._note_once(text, f"mst_key={key}: {text}")

    @property
    def hop(self) -> float:
        """What is around a tour beside training, in seconds; infinite where nobody knows."""
        return self._hop

    def take_hops(self, seconds: float) -> None:
        """States that were trained together were stored, each of which took its worker so long
        beside training.
        """
        self._hop = min(self._hop, max(0.0, seconds))

    def take_hop(self, task: Storing) -> None:
        """Visits were stored: what their worker has done for them beside training."""
        beyond = task.worked(time.monotonic()) - sum(
            result["seconds"] for result in task.trained.results
        )
        self._hop = min(self._hop, max(0.0, beyond))

    def _note_once(self, subject: object, text: str) -> None:
        if subject not in self._noted:
            self._noted.add(subject)
            self._note(text)
