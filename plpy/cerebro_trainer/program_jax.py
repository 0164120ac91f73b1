"""Programs on JAX; the only module that imports it.

XLA compiles for fixed shapes, so what differs in length between buffers is kept out of the shapes: batches are
gathered before they are passed (`jit_step`, `scan_block`), or a buffer is lengthened to one of a few capacities
and a loop runs over as many batches as there are (`scan`). So a batch size compiles once, and each size of a
last batch once more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import keras
import numpy as np
import numpy.typing as npt

from cerebro_trainer.buffers import Buffer
from cerebro_trainer.keras_program import KerasProgram, padded
from cerebro_trainer.metrics import packed
from cerebro_trainer.programs import FALLBACK, Array, Framework, Sums
from cerebro_trainer.specs import ProgramSpec

BLOCK_STEPS = 16
"""Batches in one call of the form scan_block."""
PART_ROWS = 16
"""Evaluation cuts a last batch into parts of so many rows, and what then is left into single rows: three compiled
shapes serve buffers of any length, and sums do not depend on where they are cut."""
CAPACITIES = 8
LEAST_CAPACITY = 64
"""Loops are compiled for buffers of so many rows, or for one of a few lengths up to each power of two: at most a
quarter of a longer buffer is filled up."""

Values: TypeAlias = list[Any]
"""Arrays on the device, one per variable."""
Columns: TypeAlias = tuple[list[Any], list[Any]]
"""Inputs and targets, each by position."""


def start(threads: int) -> Framework:
    """Set JAX up for this process: this many threads, and the same bits for the same work."""
    # Read when the first device is asked for. XLA_FLAGS of earlier releases no longer limit the CPU's threads.
    os.environ["PJRT_NPROC"] = str(threads)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true"
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "-1":
        jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]
    return Framework(
        name="jax",
        version=jax.__version__,
        keras_version=keras.__version__,
        devices=tuple(f"{device.platform.upper()}:{device.id}" for device in jax.devices()),
        threads=threads,
        make=JaxProgram,
        errors=(jax.errors.JaxRuntimeError,),
        memory_errors=(MemoryError,),
    )


class JaxProgram(KerasProgram):
    """A program compiled by XLA.

    Its functions are pure, so Keras' variables hold the state between calls only; a call that trains takes over
    (donates) the memory of the values that it replaces.
    """

    forms = ("jit_step", "scan_block", "scan")

    def __init__(self, spec: ProgramSpec) -> None:
        super().__init__(spec, "jax")
        positions = {id(variable): position for position, variable in enumerate(self.variables)}
        self._trainable = [positions[id(variable)] for variable in self.model.trainable_variables]
        self._train = {
            "jit_step": jax.jit(self._step, donate_argnums=0),
            "scan_block": jax.jit(self._block, donate_argnums=0),
            "scan": jax.jit(self._loop, donate_argnums=0, static_argnums=4),
        }
        self._evaluate = jax.jit(self._evaluate_batch)
        self._forward = jax.jit(self._outputs)

    def train(self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str) -> float:
        columns = self.interface.fit(buffer)
        if form == FALLBACK:
            return self.fit(*columns, order, batch_size)
        begins = np.arange(0, len(order), batch_size)
        values = [variable.value for variable in self.variables]
        with _out_of_memory():
            values, losses = self._run(values, columns, order, batch_size, form)
            means = np.concatenate([np.ravel(np.asarray(loss, np.float64)) for loss in losses])
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)
        return float(means @ np.minimum(batch_size, len(order) - begins))

    def evaluate(self, buffer: Buffer) -> Sums:
        columns = self.interface.fit(buffer)
        self.metrics.reset()
        values = [variable.value for variable in self.model.variables]
        states = [variable.value for variable in self.metrics.variables]
        losses = []
        with _out_of_memory():
            for begin, end in self._parts(columns[0]):
                loss, states = self._evaluate(values, states, _cut(columns, begin, end))
                losses.append((loss, end - begin))
            total = sum((float(loss) * rows for loss, rows in losses), 0.0)
        for variable, state in zip(self.metrics.variables, states, strict=True):
            variable.assign(state)
        return [[total, float(buffer.rows)], *self.metrics.sums()]

    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        fitted = self.interface.fit_inputs(inputs)
        values = [variable.value for variable in self.model.variables]
        with _out_of_memory():
            parts = [self._forward(values, _cut((fitted, []), *part)[0]) for part in self._parts(fitted)]
            return [
                np.concatenate([np.asarray(part[position]) for part in parts])
                for position in range(len(self.interface.outputs))
            ]

    def _run(
        self, values: Values, columns: Columns, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> tuple[Values, list[Any]]:
        """The values after one pass, and the mean losses of all batches."""
        losses, done = [], 0
        if form == "scan" and len(order) >= batch_size:
            done = len(order) - len(order) % batch_size
            steps = np.int32(done // batch_size)
            values, found = self._train[form](values, *_filled(columns, order), steps, batch_size)
            losses.append(np.asarray(found)[:steps])
        while form == "scan_block" and len(order) - done >= BLOCK_STEPS * batch_size:
            chosen = order[done : done + BLOCK_STEPS * batch_size]
            values, found = self._train[form](values, _block(_taken(columns, chosen), batch_size))
            losses.append(found)
            done += len(chosen)
        for begin in range(done, len(order), batch_size):
            values, loss = self._train["jit_step"](values, _taken(columns, order[begin : begin + batch_size]))
            losses.append(loss)
        return values, losses

    def _parts(self, inputs: Sequence[Array]) -> Iterator[tuple[int, int]]:
        """Where evaluation cuts these rows: begin and end of each part."""
        batch, begin = self.evaluation_batch(inputs), 0
        for size in (batch, min(PART_ROWS, batch), 1):
            while begin + size <= len(inputs[0]):
                yield begin, begin + size
                begin += size

    def _step(self, values: Values, columns: Columns) -> tuple[Values, Any]:
        """One optimizer step on one batch: the new values, and the loss before it."""
        count = len(self.model.variables)

        def forward(weights: Values) -> tuple[Any, tuple[Any, Values]]:
            held = dict(zip(self._trainable, weights, strict=True))
            loss, after = self._loss([held.get(i, value) for i, value in enumerate(values)], columns)
            return self.optimizer.scale_loss(loss), (loss, after)

        weights = [values[position] for position in self._trainable]
        gradients, (loss, model) = jax.grad(forward, has_aux=True)(weights)
        weights, optimizer = self.optimizer.stateless_apply(values[count:], gradients, weights)
        for position, weight in zip(self._trainable, weights, strict=True):
            model[position] = weight
        return [*model, *optimizer], loss

    def _loss(self, values: Values, columns: Columns) -> tuple[Any, Values]:
        """The loss as Keras' `fit` computes it, and the model's variables after the forward pass."""
        x, y = _arguments(columns)
        mapping = list(zip(self.variables, values, strict=True))
        with keras.StatelessScope(mapping, collect_losses=True) as scope:
            loss = self.model.compute_loss(x, y, self.model(x, training=True), training=True)
        return loss, [scope.get_current_value(variable) for variable in self.model.variables]

    def _block(self, values: Values, blocks: Columns) -> tuple[Values, Any]:
        """One step per batch of the blocks, arrays of shape (steps, batch, ...)."""
        return jax.lax.scan(self._step, values, blocks)

    def _loop(self, values: Values, columns: Columns, order: Any, steps: Any, batch: int) -> tuple[Values, Any]:
        """So many steps over batches in this order."""

        def body(position: Any, carried: tuple[Values, Any]) -> tuple[Values, Any]:
            values, losses = carried
            chosen = jax.lax.dynamic_slice(order, (position * batch,), (batch,))
            values, loss = self._step(values, _map(columns, lambda array: jnp.take(array, chosen, 0, mode="clip")))
            return values, losses.at[position].set(loss)

        losses = jnp.zeros(len(order) // batch, jnp.float32)
        return jax.lax.fori_loop(0, steps, body, (values, losses))  # type: ignore[no-any-return]

    def _evaluate_batch(self, values: Values, states: Values, columns: Columns) -> tuple[Any, Values]:
        x, y = _arguments(columns)
        mapping = [
            *zip(self.model.variables, values, strict=True),
            *zip(self.metrics.variables, states, strict=True),
        ]
        with keras.StatelessScope(mapping, collect_losses=True) as scope:
            predicted = self.model(x, training=False)
            loss = self.model.compute_loss(x, y, predicted, training=False)
            self.metrics.update(y, predicted)
        return loss, [scope.get_current_value(variable) for variable in self.metrics.variables]

    def _outputs(self, values: Values, inputs: list[Any]) -> list[Any]:
        with keras.StatelessScope(list(zip(self.model.variables, values, strict=True))):
            outputs = self.model(packed(inputs), training=False)
        return jax.tree.leaves(outputs)


@contextmanager
def _out_of_memory() -> Iterator[None]:
    """XLA has one exception for everything, which names the reason in front."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if str(error).startswith("RESOURCE_EXHAUSTED"):
            raise MemoryError(str(error).partition(": ")[2]) from error
        raise


def _map(columns: Columns, change: Callable[[Any], Any]) -> Columns:
    inputs, targets = columns
    return [change(array) for array in inputs], [change(array) for array in targets]


def _taken(columns: Columns, chosen: npt.NDArray[np.int32]) -> Columns:
    return _map(columns, lambda array: np.take(array, chosen, axis=0))


def _cut(columns: Columns, begin: int, end: int) -> Columns:
    return _map(columns, lambda array: array[begin:end])


def _block(columns: Columns, batch: int) -> Columns:
    return _map(columns, lambda array: array.reshape(-1, batch, *array.shape[1:]))


def _filled(columns: Columns, order: npt.NDArray[np.int32]) -> tuple[Columns, Array]:
    """Arrays, and an order of theirs, lengthened to one capacity."""
    rows = capacity(len(columns[0][0]))
    return _map(columns, lambda array: padded(array, rows)), padded(order, rows)


def capacity(rows: int) -> int:
    """The length for which a loop over so many rows is compiled; buffers of a table are about equally long.

    >>> capacity(1), capacity(1000), capacity(1001), capacity(1025)
    (64, 1024, 1024, 1280)
    """
    unit = max(LEAST_CAPACITY, (1 << (rows - 1).bit_length()) // CAPACITIES)
    return -(-rows // unit) * unit


def _arguments(columns: Columns) -> tuple[Any, Any]:
    inputs, targets = columns
    return packed(inputs), packed([target.astype(jnp.float32) for target in targets])
