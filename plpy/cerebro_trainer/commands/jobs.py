"""Jobs: what happens between `begin` and `finish`, one class per kind.

A job takes buffers one by one, wherever they come from: out of the cache at `finish`, or off the
wire.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.commands.fit_options import Fit
from cerebro_trainer.data import row_order, row_weights
from cerebro_trainer.data.buffer_merge import BufferMerger
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.programs.execution_modes import ModeSelector
from cerebro_trainer.programs.program import FALLBACK, PendingLoss, Program, Sums
from cerebro_trainer.programs.tensorboard import Callbacks
from cerebro_trainer.wire.fields import record, texts


class Job(ABC):
    """One piece of work on a program whose variables hold a config's state."""

    passes = 1
    """How often each dataset is gone through."""

    def __init__(self, program: Program, datasets: tuple[str, ...]) -> None:
        self.program = program
        self.datasets = datasets
        self.streamed: set[str] = set()
        self.chosen: Mapping[str, frozenset[int]] = {}
        """The buffers that it is over, by dataset, where these are not all."""
        self.callbacks: Callbacks | None = None

    def wants(self, dataset: str, buffer: Buffer) -> bool:
        """Whether it is over a buffer of a dataset."""
        return dataset not in self.chosen or buffer.buffer_id in self.chosen[dataset]

    def rounds(self) -> Iterator[tuple[int, str]]:
        """The datasets that it goes through, in order, each with the number of the pass."""
        return product(range(self.passes), self.datasets)

    @abstractmethod
    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        """Work on one buffer."""

    @abstractmethod
    def result(self) -> dict[str, object]:
        """The reply to `finish`."""

    def show(self, callbacks: Callbacks) -> None:
        """Write what TensorBoard is to show of the job, when all its buffers were taken."""
        raise RequestError("callbacks belong to jobs that train or evaluate")


class Dispatched(NamedTuple):
    """So many rows of a buffer on which the device may still train."""

    buffer: Buffer
    rows: int
    loss: PendingLoss
    form: str


class TrainJob(Job):
    """A visit: one config over one segment's partition, `epochs` times, pass by pass over the
    buffers.

    `warnings` are what the framework has warned of while it worked on the program. It ended when
    its result is asked for, unless it says otherwise.
    """

    warnings: Sequence[str] = ()
    ended_at: float | None = None

    def __init__(
        self,
        program: Program,
        datasets: tuple[str, ...],
        fit: Fit,
        forms: ModeSelector,
        threads: int,
    ) -> None:
        super().__init__(program, datasets)
        if len(datasets) != 1:
            raise RequestError(f"a train job has one dataset, received {len(datasets)}")
        self.passes = fit.epochs
        self._fit = fit
        self._forms = forms
        self._form: str | None = None
        self._threads = threads
        self._blocks = BufferMerger(fit.block_rows)
        self._rows = self._batches = 0
        self._passed = (0, 0)
        """A pass, and how many of its batches went by."""
        self._loss = self.seconds = 0.0
        self._dispatched: Dispatched | None = None

    @property
    def epoch(self) -> int:
        """The epoch that the visit is of, counted from the first call that trained the state."""
        return self._fit.place.epoch

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        for block, of_pass in self._blocks.add(buffer, pass_no):
            self._train(block, of_pass)

    def end(self) -> None:
        """All buffers were taken: train on those that are no block yet."""
        for block, of_pass in self._blocks.flush():
            self._train(block, of_pass)
        self._wait(self._dispatched, time.perf_counter())

    def _train(self, buffer: Buffer, pass_no: int) -> None:
        rows = self.order(buffer, pass_no)
        if not len(rows):
            return
        weighted = self.weighted(buffer)
        form = self.form_for(self._forms, weighted, rows, 1)
        began, before = time.perf_counter(), self._dispatched
        loss = self.program.dispatch(weighted, rows, self.batch_size, form)
        self._dispatched = Dispatched(buffer, len(rows), loss, form)
        self._wait(before, began)

    def _wait(self, dispatched: Dispatched | None, began: float) -> None:
        """Until the device has done that, where there is any; what has passed since it began was
        spent on training.
        """
        loss = dispatched.loss() if dispatched else 0.0
        self.seconds += time.perf_counter() - began
        if dispatched:
            self.passed(dispatched.buffer, dispatched.rows, loss, dispatched.form)

    @property
    def batch_size(self) -> int:
        """Rows of a step."""
        return self._fit.batch_size

    @property
    def form_asked(self) -> str | None:
        """The form that was named."""
        return self._fit.wanted.forced_mode

    def goes_as(self, other: TrainJob) -> bool:
        """Whether another visit goes through its partition in the same way, but for the order of
        rows.
        """
        return self._fit.way == other._fit.way

    def weighted(self, buffer: Buffer) -> Buffer:
        """The buffer with the weights that its rows have in the loss."""
        return row_weights.add_weights(buffer, self._fit.class_weight)

    def form_for(
        self, forms: ModeSelector, weighted: Buffer, rows: npt.NDArray[np.int32], states: int
    ) -> str:
        """The form of the visit, chosen on its first rows for so many states together."""
        if self._form is None:
            fit = self._fit
            self._form = forms.choose(
                self.program, fit.wanted, weighted, rows, fit.batch_size, states
            )
        return self._form

    def passed(self, buffer: Buffer, rows: int, loss: float, form: str) -> None:
        """So many rows of a buffer were trained on, with that sum of losses; ConfigError where it
        is no number.
        """
        self._form = form
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

    def order(self, buffer: Buffer, pass_no: int) -> npt.NDArray[np.int32]:
        """Positions of the rows that this pass trains on, in order."""
        place, steps = self._fit.place, self._fit.steps
        rows = (
            row_order.shuffle_buffer(place, buffer.buffer_id, pass_no, buffer.rows)
            if self._fit.shuffle
            else row_order.list_rows(buffer.rows)
        )
        if steps is None:
            return rows
        current, first = self._passed if self._passed[0] == pass_no else (pass_no, 0)
        self._passed = (current, first + math.ceil(buffer.rows / self._fit.batch_size))
        return steps.select(rows, self._fit.batch_size, first, place.epoch, pass_no)

    def show(self, callbacks: Callbacks) -> None:
        board, step = self.program.open_board(callbacks.folder), self.program.step
        if self._rows:
            board.write_scalars("train", {"visit_loss": self._loss / self._rows}, step)
        if callbacks.histograms:
            board.write_histograms(step)
        if callbacks.graph:
            board.write_graph()

    def result(self) -> dict[str, object]:
        return {
            "rows": self._rows,
            "batches": self._batches,
            "loss": self._loss / self._rows if self._rows else None,
            "form": self._form or self.program.modes[0],
            "timings": {
                form: timing.to_json() for form, timing in self._forms.take_new_timings().items()
            },
            "fallback": self._forms.first_error if self._form == FALLBACK else None,
            "warnings": self.warnings,
            "threads": self._threads,
            "seconds": self.seconds,
            "ended_at": self.ended_at or time.time(),
            "state_bytes": self.program.layout.nbytes,
            "shards": self.program.describe_shards(),
        }


class TimeJob(Job):
    """How fast a config would train: its form is chosen on the first buffer, and its state stays as
    it was.
    """

    def __init__(
        self, program: Program, datasets: tuple[str, ...], fit: Fit, forms: ModeSelector
    ) -> None:
        super().__init__(program, datasets)
        self._fit = fit
        self._forms = forms
        self._form: str | None = None

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        if self._form is None and buffer.rows:
            fit, rows = self._fit, row_order.list_rows(buffer.rows)
            weighted = row_weights.add_weights(buffer, fit.class_weight)
            self._form = self._forms.choose(
                self.program, fit.wanted, weighted, rows, fit.batch_size
            )

    def result(self) -> dict[str, object]:
        form = self._form or self.program.modes[0]
        return {
            "form": form,
            "timings": {
                name: timing.to_json() for name, timing in self._forms.take_new_timings().items()
            },
            **self._forms.get_timing(form).to_json(),
            "state_bytes": self.program.layout.nbytes,
            "shards": self.program.describe_shards(),
        }


class AverageJob(Job):
    """The state is the mean of others, and that is all: nothing is trained. The reply is one of a
    training job.
    """

    def __init__(
        self, program: Program, datasets: tuple[str, ...], shares: Sequence[int], threads: int
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

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError("an averaging job takes no buffers")

    def result(self) -> dict[str, object]:
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
            "state_bytes": self.program.layout.nbytes,
            "shards": self.program.describe_shards(),
        }


class RestoreJob(Job):
    """The state is there, and that is all: whether it fits is what is asked."""

    whole = False
    """Whether all of it fitted, not the weights alone."""

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError("a restoring job takes no buffers")

    def result(self) -> dict[str, object]:
        return {"whole": self.whole}


class EvaluateJob(Job):
    """Loss and metrics of a config over datasets, as sums that add up over segments; final ones of
    those whose `total` is all there is."""

    def __init__(
        self, program: Program, datasets: tuple[str, ...], total: Mapping[str, Sequence[str]]
    ) -> None:
        super().__init__(program, datasets)
        self._total = total
        self._seconds = 0.0
        self._rows = dict.fromkeys(datasets, 0)
        self._sums: dict[str, Sums] = {dataset: program.zero_sums() for dataset in datasets}
        self._ends = dict.fromkeys(datasets, time.time())

    @classmethod
    def asked(
        cls, program: Program, datasets: tuple[str, ...], header: Mapping[str, Any]
    ) -> EvaluateJob:
        """As a request says it; datasets in `total` are named by what is added up."""
        asked = record(header, "total") if "total" in header else {}
        total = {name: texts(asked, name) for name in asked}
        if not {key for keys in total.values() for key in keys} <= set(datasets):
            raise RequestError(f'"total" names other datasets than {list(datasets)}: {total}'[:300])
        return cls(program, datasets, total)

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        began = time.perf_counter()
        self._sums[dataset] = added(self._sums[dataset], self.program.evaluate(buffer))
        self._seconds += time.perf_counter() - began
        self._rows[dataset] += buffer.rows
        self._ends[dataset] = time.time()

    def show(self, callbacks: Callbacks) -> None:
        board = self.program.open_board(callbacks.folder)
        for kind, dataset in callbacks.datasets.items():
            if self._rows.get(dataset):
                found: Any = self.program.compute_results(self._sums[dataset])
                named = zip(
                    ("loss", *callbacks.metrics), (found["loss"], *found["metrics"]), strict=False
                )
                board.write_scalars(
                    kind, {f"epoch_{name}": value for name, value in named}, callbacks.epoch
                )

    def result(self) -> dict[str, object]:
        return {
            "datasets": {
                dataset: {"rows": rows, "sums": self._sums[dataset]}
                for dataset, rows in self._rows.items()
            },
            "ended_at": self._ends,
            "seconds": self._seconds,
            "metrics": {
                name: self.program.compute_results(self._added(keys))
                for name, keys in self._total.items()
            },
        }

    def _added(self, datasets: Sequence[str]) -> Sums:
        """The sums of these, added up in their order: it decides the last bits."""
        return reduce(
            added, (self._sums[dataset] for dataset in datasets), self.program.zero_sums()
        )


def added(sums: Sums, others: Sums) -> Sums:
    """Sums of more rows than before."""
    return [
        [one + other for one, other in zip(*pair, strict=True)]
        for pair in zip(sums, others, strict=True)
    ]


class PredictJob(Job):
    """A config's state held ready for `rows` requests."""

    def take(self, dataset: str, buffer: Buffer, pass_no: int) -> None:
        raise RequestError("a predict job takes rows, not buffers")

    def result(self) -> dict[str, object]:
        return {}
