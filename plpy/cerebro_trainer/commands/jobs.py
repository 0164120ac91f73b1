"""Jobs: the work between `begin` and `finish`, with one class per kind.

A job processes buffers one by one, either from the cache at `finish`, or from the wire.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, ClassVar, NamedTuple, TypeAlias

from cerebro_trainer.commands.fit_options import FitOptions
from cerebro_trainer.data import row_order, row_weights
from cerebro_trainer.data.buffer_merge import BufferMerger
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.calibration import NO_CALIBRATION
from cerebro_trainer.data.row_order import Rows
from cerebro_trainer.data.target_scale import ResultUnits
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.programs.execution_modes import ModeSelector
from cerebro_trainer.programs.learner import Learner, Sums
from cerebro_trainer.programs.program import FALLBACK, PendingLoss, Program
from cerebro_trainer.programs.tensorboard import Callbacks
from cerebro_trainer.wire.fields import Header, if_present, record, texts
from cerebro_trainer.wire.frames import Reply

DatasetKeys: TypeAlias = tuple[str, ...]


class Job(ABC):
    """One piece of work on a learner whose variables contain a config's state."""

    # Number of passes over each dataset
    passes = 1

    def __init__(self, learner: Learner, datasets: DatasetKeys) -> None:
        self.learner = learner
        self.datasets = datasets
        # Datasets that come from the wire
        self.streamed: set[str] = set()
        # Buffers to process, by dataset; all buffers of datasets that are missing here
        self.selected_buffers: Mapping[str, frozenset[int]] = {}
        self.callbacks: Callbacks | None = None
        # Units of the target if its labels are scaled
        self.units: ResultUnits | None = None
        # Of the outputs of classes
        self.calibration = NO_CALIBRATION

    def selects(self, dataset: str, buffer: Buffer) -> bool:
        """Return whether the job processes a buffer of a dataset."""
        if dataset not in self.selected_buffers:
            return True
        return buffer.buffer_id in self.selected_buffers[dataset]

    def list_passes(self) -> Iterator[tuple[int, str]]:
        """Return the passes over datasets in order: the number of the pass and the dataset."""
        return product(range(self.passes), self.datasets)

    @abstractmethod
    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        """Process a buffer."""

    def complete(self) -> None:  # noqa: B027 (most jobs are done with their last buffer)
        """Do what is left when all buffers are processed."""

    def to_reply(self) -> Reply:
        """Return the reply to `finish`."""
        return {}

    def compute_results(self, sums: Sums) -> dict[str, Any]:
        """Return loss and metrics from sums over rows, in the units of the target."""
        results: dict[str, Any] = self.learner.compute_results(sums)
        if self.units is None:
            return results
        return self.units.convert_results(results)

    def write_board(self, callbacks: Callbacks) -> None:
        """Write the results for TensorBoard when all buffers are processed."""
        raise RequestError("callbacks belong to jobs that train or evaluate")


class StateJob(Job):
    """A job that only needs a state, and processes no buffers."""

    refusal: ClassVar[str]  # error message for a buffer

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError(self.refusal)


class NetworkJob(Job):
    """A job that only networks can do."""

    def __init__(self, program: Program, datasets: DatasetKeys) -> None:
        super().__init__(program, datasets)
        self.program = program

    def describe_state(self) -> Reply:
        """Return the size of the program's state, and its shards."""
        return {
            "state_bytes": self.program.layout.nbytes,
            "shards": self.program.describe_shards(),
        }


class PendingPass(NamedTuple):
    """Rows of a buffer on which the device may still train."""

    buffer: Buffer
    rows: int
    loss: PendingLoss
    mode: str


class TrainJob(NetworkJob):
    """A visit: one config trains on one segment's partition, `epochs` times."""

    # Warnings of the framework about the program
    warnings: Sequence[str] = ()
    # None for the time of the reply
    ended_at: float | None = None

    def __init__(
        self,
        program: Program,
        datasets: DatasetKeys,
        fit: FitOptions,
        selector: ModeSelector,
        threads: int,
    ) -> None:
        super().__init__(program, datasets)
        if len(datasets) != 1:
            raise RequestError(f"a train job has one dataset, received {len(datasets)}")
        self.passes = fit.epochs
        self.seconds = 0.0
        self._fit = fit
        self._selector = selector
        self._threads = threads
        self._mode: str | None = None
        self._merger = BufferMerger(fit.block_rows)
        self._rows = 0
        self._batches = 0
        self._loss = 0.0
        self._current_pass = 0
        self._next_batch = 0  # of the current pass
        self._pending: PendingPass | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the visit, counted from the first call that trained the state."""
        return self._fit.visit.epoch

    @property
    def loss(self) -> float | None:
        """The mean loss of a row, in the units of the target; None without rows."""
        if not self._rows:
            return None
        loss = self._loss / self._rows
        if self.units is None:
            return loss
        return self.units.convert_loss(loss)

    @property
    def batch_size(self) -> int:
        """Rows of a step."""
        return self._fit.batch_size

    @property
    def forced_mode(self) -> str | None:
        """The execution mode that the request names."""
        return self._fit.mode_request.forced_mode

    def has_same_settings(self, other: TrainJob) -> bool:
        """Return whether another visit has the same fit parameters."""
        return self._fit.shared_settings == other._fit.shared_settings

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        for block, block_pass in self._merger.add(buffer, pass_no):
            self._train(block, block_pass)

    def complete(self) -> None:
        """Train on the buffers that are not in a block yet, and wait for the device."""
        for block, block_pass in self._merger.flush():
            self._train(block, block_pass)
        self._wait(self._pending, time.perf_counter())

    def _train(self, buffer: Buffer, pass_no: int) -> None:
        """Start training on a buffer, then wait for the previous one."""
        order = self.order_rows(buffer, pass_no)
        if not len(order):
            return
        weighted = self.add_weights(buffer)
        mode = self.choose_mode(self._selector, weighted, order, states=1)
        start = time.perf_counter()
        previous = self._pending
        loss = self.program.dispatch(weighted, order, self.batch_size, mode)
        self._pending = PendingPass(buffer, len(order), loss, mode)
        self._wait(previous, start)

    def _wait(self, pending: PendingPass | None, start: float) -> None:
        """Wait for a pass on the device, and count the time since `start` as training."""
        loss = pending.loss() if pending else 0.0
        self.seconds += time.perf_counter() - start
        if pending:
            self.record_pass(pending.buffer, pending.rows, loss, pending.mode)

    def add_weights(self, buffer: Buffer) -> Buffer:
        """Return the buffer with the weights of its rows in the loss."""
        return row_weights.add_weights(buffer, self._fit.class_weight)

    def choose_mode(
        self, selector: ModeSelector, weighted: Buffer, order: Rows, states: int
    ) -> str:
        """Return the execution mode of the visit, which is chosen on its first rows.

        Args:
            states: number of states that are trained together.
        """
        if self._mode is None:
            self._mode = selector.choose(
                self.program, self._fit.mode_request, weighted, order, self.batch_size, states
            )
        return self._mode

    def record_pass(self, buffer: Buffer, rows: int, loss: float, mode: str) -> None:
        """Add the results of training on a buffer.

        Args:
            loss: sum over the rows.

        Raises:
            ConfigError: the loss is not a finite number.
        """
        self._mode = mode
        self._loss += loss
        self._rows += rows
        self._batches += math.ceil(rows / self.batch_size)
        if not math.isfinite(self._loss):
            raise ConfigError(
                f"the training loss became {self._loss} in buffer {buffer.buffer_id}",
                sqlstate="22003",
                hint="A smaller learning rate, gradient clipping or normalised inputs usually "
                "help.",
            )

    def order_rows(self, buffer: Buffer, pass_no: int) -> Rows:
        """Return the positions of the rows on which a pass trains, in order."""
        fit = self._fit
        if fit.shuffle:
            rows = row_order.shuffle_buffer(fit.visit, buffer.buffer_id, pass_no, buffer.rows)
        else:
            rows = row_order.list_rows(buffer.rows)
        if fit.steps is None:
            return rows
        if pass_no != self._current_pass:
            self._current_pass = pass_no
            self._next_batch = 0
        first_batch = self._next_batch
        self._next_batch += math.ceil(buffer.rows / fit.batch_size)
        return fit.steps.select(rows, fit.batch_size, first_batch, fit.visit.epoch, pass_no)

    def write_board(self, callbacks: Callbacks) -> None:
        board = self.program.open_board(callbacks.folder)
        step = self.program.step
        if self.loss is not None:
            board.write_scalars("train", {"visit_loss": self.loss}, step)
        if callbacks.histograms:
            board.write_histograms(step)
        if callbacks.graph:
            board.write_graph()

    def to_reply(self) -> Reply:
        return {
            "rows": self._rows,
            "batches": self._batches,
            "loss": self.loss,
            "form": self._mode or self.program.modes[0],
            "timings": _take_timings(self._selector),
            "fallback": self._selector.first_error if self._mode == FALLBACK else None,
            "warnings": self.warnings,
            "threads": self._threads,
            "seconds": self.seconds,
            "ended_at": self.ended_at or time.time(),
            **self.describe_state(),
        }


class TimeJob(NetworkJob):
    """Measures the training speed of a config on the first buffer, without changing its state."""

    def __init__(
        self, program: Program, datasets: DatasetKeys, fit: FitOptions, selector: ModeSelector
    ) -> None:
        super().__init__(program, datasets)
        self._fit = fit
        self._selector = selector
        self._mode: str | None = None

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        if self._mode is not None or not buffer.rows:
            return
        fit = self._fit
        order = row_order.list_rows(buffer.rows)
        weighted = row_weights.add_weights(buffer, fit.class_weight)
        self._mode = self._selector.choose(
            self.program, fit.mode_request, weighted, order, fit.batch_size
        )

    def to_reply(self) -> Reply:
        mode = self._mode or self.program.modes[0]
        return {
            "form": mode,
            "timings": _take_timings(self._selector),
            **self._selector.get_timing(mode).to_json(),
            **self.describe_state(),
        }


def _take_timings(selector: ModeSelector) -> Reply:
    return {mode: timing.to_json() for mode, timing in selector.take_new_timings().items()}


class AverageJob(StateJob, NetworkJob):
    """Computes the mean of several states, without training; its reply is that of a visit."""

    refusal = "an averaging job takes no buffers"

    def __init__(
        self, program: Program, datasets: DatasetKeys, shares: Sequence[int], threads: int
    ) -> None:
        super().__init__(program, datasets)
        if datasets:
            raise RequestError(f"an averaging job has no datasets, received {len(datasets)}")
        if program.describe_shards():
            raise ConfigError(
                "the model does not fit into its trainer's memory, and neither does the mean of "
                "several states",
                sqlstate="53200",
                hint="madlib_fit_multiple_model trains it in shards. Or ask the administrator to "
                "raise trainer_memory_mb in cerebro.setting.",
            )
        self._rows = sum(shares)
        self._threads = threads

    def to_reply(self) -> Reply:
        return {
            "rows": self._rows,
            "batches": 0,
            "loss": None,
            "form": None,
            "timings": {},
            "fallback": None,
            "warnings": [],
            "threads": self._threads,
            "seconds": 0.0,
            "ended_at": time.time(),
            **self.describe_state(),
        }


class RestoreJob(StateJob):
    """Loads a state, to check whether it fits."""

    refusal = "a restoring job takes no buffers"

    # True if all variables fitted, not only the weights
    is_complete = False

    def to_reply(self) -> Reply:
        return {"whole": self.is_complete}


class EvaluateJob(Job):
    """Computes loss and metrics over datasets, as sums that can be added up over segments.

    Args:
        totals: datasets, by name of the total, for which the reply contains final metrics.
    """

    def __init__(
        self, learner: Learner, datasets: DatasetKeys, totals: Mapping[str, Sequence[str]]
    ) -> None:
        super().__init__(learner, datasets)
        self._totals = totals
        self._seconds = 0.0
        self._rows = dict.fromkeys(datasets, 0)
        self._sums: dict[str, Sums] = {dataset: learner.zero_sums() for dataset in datasets}
        self._ended_at = dict.fromkeys(datasets, time.time())

    @classmethod
    def from_header(cls, learner: Learner, datasets: DatasetKeys, header: Header) -> EvaluateJob:
        """Create the job of a request."""
        total_header = if_present(header, "total", record) or {}
        totals = {name: texts(total_header, name) for name in total_header}
        if not {key for keys in totals.values() for key in keys} <= set(datasets):
            raise RequestError(
                f'"total" names other datasets than {list(datasets)}: {totals}'[:300]
            )
        return cls(learner, datasets, totals)

    def process(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        start = time.perf_counter()
        self._sums[dataset] = add_sums(self._sums[dataset], self.learner.evaluate(buffer))
        self._seconds += time.perf_counter() - start
        self._rows[dataset] += buffer.rows
        self._ended_at[dataset] = time.time()

    def write_board(self, callbacks: Callbacks) -> None:
        board = self.learner.open_board(callbacks.folder)
        names = ("loss", *callbacks.metrics)
        for kind, dataset in callbacks.datasets.items():
            if not self._rows.get(dataset):
                continue
            results = self.compute_results(self._sums[dataset])
            values = (results["loss"], *results["metrics"])
            scalars = {f"epoch_{name}": v for name, v in zip(names, values, strict=False)}
            board.write_scalars(kind, scalars, callbacks.epoch)

    def to_reply(self) -> Reply:
        return {
            "datasets": {
                dataset: {"rows": rows, "sums": self._sums[dataset]}
                for dataset, rows in self._rows.items()
            },
            "ended_at": self._ended_at,
            "seconds": self._seconds,
            "metrics": {
                name: self.compute_results(self._add_up(datasets))
                for name, datasets in self._totals.items()
            },
        }

    def _add_up(self, datasets: Sequence[str]) -> Sums:
        """Add up the sums of datasets in their order, which decides the last bits."""
        sums = (self._sums[dataset] for dataset in datasets)
        return reduce(add_sums, sums, self.learner.zero_sums())


def add_sums(sums: Sums, other_sums: Sums) -> Sums:
    """Add the sums of different rows."""
    return [
        [a + b for a, b in zip(*pair, strict=True)] for pair in zip(sums, other_sums, strict=True)
    ]
