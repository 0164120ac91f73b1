"""The visits of boosted trees.

Trees are grown over all rows at once. So the visits of an epoch follow each other on one worker:
each collects the rows of its segment, and the last one grows the trees of the epoch.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence

from cerebro_trainer.boosting.family import BoostedTrees
from cerebro_trainer.boosting.growing import make_seed
from cerebro_trainer.commands.fit_options import FitOptions
from cerebro_trainer.commands.jobs import DatasetKeys, Job
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.wire.frames import Reply

FORM = "trees"
"""The execution mode in replies; a number follows if time has ended a growth after so many rounds.
"""
FORMS = re.compile(rf"{FORM}(?: ([1-9][0-9]{{0,8}}))?")
MIN_SECONDS = 1.0
"""A growth may last at least this, however late it begins: one tree is of little use."""
TIMED = "timed"
"""Name of the rows that are timed, among collected datasets."""
TIMED_ROUNDS = 4


class GrowJob(Job):
    """A visit of boosted trees to a segment.

    Args:
        grown_datasets: datasets over which the visit grows trees; empty if it only collects rows.
        budget: memory of the trainer.
        threads: threads of the trainer, for the reply.
        until: time at which the growth ends, by time.time(). A replay repeats the rounds instead.
    """

    # Warnings about the config
    warnings: Sequence[str] = ()

    def __init__(
        self,
        trees: BoostedTrees,
        datasets: DatasetKeys,
        fit: FitOptions,
        grown_datasets: Sequence[str],
        budget: MemoryBudget,
        threads: int,
        until: float = math.inf,
    ) -> None:
        super().__init__(trees, datasets)
        if len(datasets) != 1:
            raise RequestError(f"a train job has one dataset, received {len(datasets)}")
        grown = list(grown_datasets)
        if grown and (grown[-1] != datasets[0] or len(set(grown)) < len(grown)):
            raise RequestError(
                f'"grows" must be different datasets, the last of them {datasets[0]!r}; received '
                f"{grown}"[:300]
            )
        check_fit(fit)
        self._trees = trees
        self._fit = fit
        self._grown_datasets = grown
        self._budget = budget
        self._threads = threads
        self._until = until
        self._form = FORM
        self._buffers: list[Buffer] = []
        self._loss: float | None = None
        self._seconds = 0.0

    @property
    def epoch(self) -> int:
        """The epoch of the visit, counted from the first call that trained the state."""
        return self._fit.visit.epoch

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        self._buffers.append(buffer)

    def complete(self) -> None:
        """Collect the rows of the segment, and grow trees over those of all segments."""
        start = time.perf_counter()
        (dataset,) = self.datasets
        self._trees.collect(dataset, self._buffers, self._fit.class_weight)
        if self._grown_datasets:
            self._loss = self._grow()
        self._seconds = time.perf_counter() - start

    def _grow(self) -> float | None:
        """Grow the trees of an epoch; return the mean loss in the units of the target.

        Raises:
            ConfigError: the loss is not a finite number.
        """
        trees = self._trees
        visit = self._fit.visit
        needed_bytes = trees.estimate_growth_bytes(self._grown_datasets)
        self._budget.check("the rows of boosted trees", needed_bytes)
        seed = make_seed(visit.seed, visit.mst_key, visit.epoch, visit.segment_id, trees.step)
        rounds = read_rounds(self._fit) or trees.spec.rounds_per_epoch * self._fit.epochs
        until = max(self._until, time.time() + MIN_SECONDS)
        loss = trees.grow(self._grown_datasets, rounds, seed, until)
        if trees.cut_rounds is not None:
            self._form = f"{FORM} {trees.cut_rounds}"
        if loss is None:
            return None
        if not math.isfinite(loss):
            raise ConfigError(
                f"the training loss became {loss}",
                sqlstate="22003",
                hint="A smaller learning rate, or a target with smaller numbers, usually helps.",
            )
        if self.units is None:
            return loss
        return self.units.convert_loss(loss)

    def to_reply(self) -> Reply:
        return {
            "rows": sum(buffer.rows for buffer in self._buffers),
            "batches": 0,
            "loss": self._loss,
            "form": self._form,
            "timings": {},
            "fallback": None,
            "warnings": self.warnings,
            "threads": self._threads,
            "seconds": self._seconds,
            "ended_at": time.time(),
            "state_bytes": self._trees.layout.nbytes,
            "shards": [],
        }


class TimeGrowthJob(Job):
    """Measures how fast trees grow over the first rows, without changing the state."""

    def __init__(self, trees: BoostedTrees, datasets: DatasetKeys, fit: FitOptions) -> None:
        super().__init__(trees, datasets)
        self._trees = trees
        check_fit(fit)
        self._fit = fit
        self._seconds_per_row: float | None = None

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        if self._seconds_per_row is None and buffer.rows:
            self._seconds_per_row = self._measure(buffer)

    def _measure(self, buffer: Buffer) -> float:
        """Return the seconds of an epoch for a row, from a few rounds on a buffer."""
        trees = self._trees
        values = trees.read()
        first_round = trees.step
        rounds = trees.spec.rounds_per_epoch
        start = time.perf_counter()
        trees.collect(TIMED, [buffer], self._fit.class_weight)
        trees.grow([TIMED], min(rounds, TIMED_ROUNDS), 0)
        seconds = time.perf_counter() - start
        grown = max(1, trees.step - first_round)
        trees.write(values)
        return seconds / grown * rounds / buffer.rows

    def to_reply(self) -> Reply:
        return {
            "form": FORM,
            "timings": {},
            "seconds_per_row": self._seconds_per_row,
            "compile_seconds": 0.0,
            "state_bytes": self._trees.layout.nbytes,
            "shards": [],
        }


def check_fit(fit: FitOptions) -> None:
    """Raise an error if fit parameters ask for what boosted trees do not have."""
    if fit.steps is not None:
        raise ConfigError(
            'boosted trees learn from all rows of an epoch at once: "steps_per_epoch" is for '
            "networks",
            sqlstate="0A000",
        )
    mode = fit.mode_request.forced_mode
    if mode is not None and not (isinstance(mode, str) and FORMS.fullmatch(mode)):
        raise RequestError(f"form {mode!r:.80} is unknown; boosted trees have {FORM}")


def read_rounds(fit: FitOptions) -> int | None:
    """Return the rounds after which time ended the growth that is repeated; None if it did not."""
    match = FORMS.fullmatch(fit.mode_request.forced_mode or "")
    return int(match[1]) if match and match[1] else None
