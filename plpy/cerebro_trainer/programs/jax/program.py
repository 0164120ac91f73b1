"""Programs on JAX.

XLA compiles for fixed shapes, so the lengths of buffers are kept out of the shapes. Batches are
gathered before they are passed (`jit_step`, `scan_block`), or a buffer is padded to one of a few
capacities and a loop runs over its batches (`scan`). A batch size therefore compiles once, and each
size of a last batch once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import keras
import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import (
    Columns,
    join_batches,
    map_arrays,
    pad_to_capacity,
    slice_rows,
    split_batches,
    take_rows,
)
from cerebro_trainer.models import keras_model
from cerebro_trainer.models.keras_model import unwrap_single
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.attributions import Gradient
from cerebro_trainer.programs.fusion import LANES, Fusion, Member, Order
from cerebro_trainer.programs.jax.compiled_code import CachedFunction, Function, FunctionCache
from cerebro_trainer.programs.jax.device import (
    Values,
    assign_values,
    convert_memory_errors,
    move_to_device,
    read_values,
    replace_values,
    temporary_values,
)
from cerebro_trainer.programs.jax.fusion import FusedLoop, JaxFusion
from cerebro_trainer.programs.keras_program import Forward, KerasProgram
from cerebro_trainer.programs.learner import Sums
from cerebro_trainer.programs.program import FALLBACK, PendingLoss
from cerebro_trainer.wire.frames import Array, Arrays

BLOCK_STEPS = 16
"""Batches per call of the mode scan_block."""
PART_ROWS = 16
"""Evaluation cuts a last batch into parts of so many rows, and the remainder into single rows.

Three compiled shapes then serve buffers of any length, and sums do not depend on the cuts.
"""

StepResult: TypeAlias = tuple[Values, Any]
"""New values of all variables, and the loss, or the losses of several batches."""
Losses: TypeAlias = list[tuple[Any, int]]
"""Arrays on the device, with the number of their first elements that are mean losses of batches."""


class JaxProgram(KerasProgram):
    """A program compiled by XLA.

    Its functions are pure: Keras' variables hold the state between calls only. A call that trains
    takes over (donates) the memory of the values that it replaces.
    """

    batches_at_once: Mapping[str, int] = {"scan_block": BLOCK_STEPS}
    lanes = LANES
    compilation_factor = 1.5

    def __init__(self, spec: ProgramSpec, functions: FunctionCache | None = None) -> None:
        # A custom function may depend on more than its source, which is all that the key contains.
        if functions is None or spec.sources:
            self._functions = FunctionCache(None)
        else:
            self._functions = functions.select_program(spec.key)
        super().__init__(spec, "jax")
        # On a CPU, a loop in XLA takes a fourth of the time for small networks, and twice the time
        # for convolutions.
        if keras_model.has_convolution(self.model):
            self.modes = ("jit_step", "scan", "scan_block")
        else:
            self.modes = ("scan", "jit_step", "scan_block")
        positions = {id(variable): position for position, variable in enumerate(self.variables)}
        self._trained_positions = [positions[id(variable)] for variable in self.trained_variables]
        make_function = partial(CachedFunction, self._functions)
        self._train = {
            "jit_step": make_function("step", self._step, 2, donate_argnums=1),
            "scan_block": make_function("block", self._block, 2, donate_argnums=1),
            "scan": make_function("loop", self._loop, 2, donate_argnums=1, static_argnames="batch"),
        }
        self._fused = {
            mode: FusedLoop(make_function, lanes, self._loop, self._step)
            for mode, lanes in self.lanes.items()
        }
        self._evaluate = make_function("evaluate", self._evaluate_batch, 3)
        self._forward = make_function("forward", self._outputs, 1)

    def take_saved_compile_seconds(self) -> float:
        return self._functions.take_saved_compile_seconds()

    def read_variable(self, variable: Any) -> Array:
        # Keras would request the dtype None of an array that `assign` left, which NumPy 1 takes
        # for float64.
        return np.asarray(variable.value)

    def assign(self, position: int, value: Array) -> None:
        # Keras' assign takes longer than training a small batch; compiled code takes any array.
        self.variables[position]._direct_assign(value)

    def compile_function(self, function: Function, variables: Sequence[Any]) -> Function:
        model_variables = self.model.variables

        def call_purely(model_values: Values, values: Values, *arrays: Any) -> tuple[Any, Values]:
            scope_values = [
                *zip(model_variables, model_values, strict=True),
                *zip(variables, values, strict=True),
            ]
            with keras.StatelessScope(scope_values, collect_losses=True) as scope:
                result = function(*arrays)
            return result, [scope.get_current_value(variable) for variable in variables]

        compiled = CachedFunction(self._functions, function.__name__, call_purely, 2)

        def call(*arrays: Any) -> Any:
            result, values = compiled(read_values(model_variables), read_values(variables), *arrays)
            assign_values(variables, values)
            return result

        return call

    def dispatch(self, buffer: Buffer, order: Order, batch_size: int, mode: str) -> PendingLoss:
        if mode in self.lanes:
            return self.train_in_lanes(buffer, order, batch_size, mode)
        columns = self.io_spec.convert(buffer)
        if mode == FALLBACK:
            return partial(float, self.fit_with_keras(*columns, order, batch_size))
        with convert_memory_errors():
            values, losses = self._run(columns, order, batch_size, mode)
        assign_values(self.variables, values)
        batch_rows = np.minimum(batch_size, np.arange(len(order), 0, -batch_size))
        return partial(_sum_losses, losses, batch_rows)

    def fuse(self, members: Sequence[Member], mode: str) -> Fusion:
        return JaxFusion(self._fused[mode], self.io_spec, members)

    def evaluate(self, buffer: Buffer) -> Sums:
        columns = self.io_spec.convert(buffer)
        self.metrics.reset()
        hyperparameters = read_values(self.hyperparameters.variables)
        values = move_to_device(self.variables)
        metric_values = read_values(self.metrics.variables)
        losses = []
        with convert_memory_errors():
            for begin, end in self._cut_rows(columns[0]):
                batch = slice_rows(columns, begin, end)
                loss, metric_values = self._evaluate(hyperparameters, values, metric_values, batch)
                losses.append((loss, end - begin))
            total = sum((float(loss) * rows for loss, rows in losses), 0.0)
        assign_values(self.metrics.variables, metric_values)
        return [[total, float(buffer.rows)], *self.metrics.read_sums()]

    def predict(self, inputs: Arrays) -> list[Array]:
        arrays = self.io_spec.convert_inputs(inputs)
        values = move_to_device(self.variables)
        with convert_memory_errors():
            return join_batches(
                self._forward(values, [array[begin:end] for array in arrays])
                for begin, end in self._cut_rows(arrays)
            )

    def compile_gradient(self, model: keras.Model) -> Gradient:
        def compute_output(
            points: list[Any], other_inputs: list[Any], unit_weights: Any, values: Values
        ) -> Any:
            with keras.StatelessScope([*zip(model.variables, values, strict=True)]):
                output = model(unwrap_single([*points, *other_inputs]), training=False)
            return jnp.sum(output.astype(jnp.float32).reshape(unit_weights.shape) * unit_weights)

        compiled = jax.jit(jax.grad(compute_output))

        def compute_gradient(
            points: Arrays, other_inputs: Arrays, unit_weights: Array
        ) -> list[Array]:
            with convert_memory_errors():
                gradients = compiled(
                    points, other_inputs, unit_weights, read_values(model.variables)
                )
                return [np.asarray(gradient) for gradient in gradients]

        return compute_gradient

    def compile_forward(self, model: keras.Model) -> Forward:
        def compute_output(values: Values, inputs: list[Any]) -> Any:
            with self._open_scope(values):
                return model(unwrap_single(inputs), training=False).astype(jnp.float32)

        compiled = jax.jit(compute_output)

        def forward(arrays: Arrays) -> Array:
            values = move_to_device(self.variables)
            with convert_memory_errors():
                parts = [
                    compiled(values, [array[begin:end] for array in arrays])
                    for begin, end in self._cut_rows(arrays)
                ]
                return np.concatenate([np.asarray(part) for part in parts])

        return forward

    def _run(
        self, columns: Columns, order: Order, batch_size: int, mode: str
    ) -> tuple[Values, Losses]:
        """Train one pass; return the new values, and the losses in the order of the batches."""
        values = read_values(self.variables)
        hyperparameters = read_values(self.hyperparameters.variables)
        losses: Losses = []
        position = 0
        if mode == "scan" and len(order) >= batch_size:
            steps = len(order) // batch_size
            values, loop_losses = self._train["scan"](
                hyperparameters,
                values,
                *pad_to_capacity(columns, order),
                np.int32(steps),
                batch=batch_size,
            )
            losses.append((loop_losses, steps))
            position = steps * batch_size
        while mode == "scan_block" and len(order) - position >= BLOCK_STEPS * batch_size:
            block_order = order[position : position + BLOCK_STEPS * batch_size]
            block = split_batches(take_rows(columns, block_order), batch_size)
            values, block_losses = self._train["scan_block"](hyperparameters, values, block)
            losses.append((block_losses, BLOCK_STEPS))
            position += len(block_order)
        for begin in range(position, len(order), batch_size):
            batch = take_rows(columns, order[begin : begin + batch_size])
            values, loss = self._train["jit_step"](hyperparameters, values, batch)
            losses.append((loss, 1))
        return values, losses

    def _cut_rows(self, inputs: Arrays) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the parts into which evaluation cuts these rows."""
        batch = self.choose_evaluation_batch(inputs)
        begin = 0
        for size in (batch, min(PART_ROWS, batch), 1):
            while begin + size <= len(inputs[0]):
                yield begin, begin + size
                begin += size

    def _step(self, hyperparameters: Values, values: Values, columns: Columns) -> StepResult:
        """Take one optimizer step on one batch; return the new values, and the loss before it."""
        count = len(self.network.variables)

        def forward(weights: Values) -> tuple[Any, tuple[Any, Values]]:
            x, y, row_weights = self.make_arguments(*columns)
            scope_values = replace_values(values, self._trained_positions, weights)
            with self._open_scope(scope_values) as scope:
                loss = self.model.compute_loss(
                    x, y, self.model(x, training=True), row_weights, training=True
                )
                new_values = [
                    scope.get_current_value(variable) for variable in self.network.variables
                ]
                return self.optimizer.scale_loss(loss), (loss, new_values)

        weights = [values[position] for position in self._trained_positions]
        with temporary_values(self.hyperparameters.variables, hyperparameters):
            gradients, (loss, new_values) = jax.grad(forward, has_aux=True)(weights)
            # As in Keras, changes that layers make to their own weights are lost, and those of the
            # optimizer count.
            with self.cache_learning_rate():
                weights, optimizer_values = self.optimizer.stateless_apply(
                    values[count:], gradients, weights
                )
        network_values = replace_values(new_values, self._trained_positions, weights)
        return [*network_values, *optimizer_values], loss

    def _block(self, hyperparameters: Values, values: Values, blocks: Columns) -> StepResult:
        """Take one step per batch; arrays have the shape (steps, batch, ...)."""
        return jax.lax.scan(partial(self._step, hyperparameters), values, blocks)

    def _loop(
        self,
        hyperparameters: Values,
        values: Values,
        columns: Columns,
        order: Any,
        steps: Any,
        batch: int,
    ) -> StepResult:
        """Take so many steps over batches of rows in this order."""

        def take_step(position: Any, carried: StepResult) -> StepResult:
            values, losses = carried
            positions = jax.lax.dynamic_slice(order, (position * batch,), (batch,))
            rows = map_arrays(columns, lambda array: jnp.take(array, positions, 0, mode="clip"))
            values, loss = self._step(hyperparameters, values, rows)
            return values, losses.at[position].set(loss)

        losses = jnp.zeros(len(order) // batch, jnp.float32)
        return jax.lax.fori_loop(0, steps, take_step, (values, losses))  # type: ignore[no-any-return]

    def _evaluate_batch(
        self, hyperparameters: Values, values: Values, metric_values: Values, columns: Columns
    ) -> tuple[Any, Values]:
        """Return the mean loss of a batch, and the metrics' variables with the batch added."""
        x, y, _ = self.make_arguments(*columns)
        metric_variables = self.metrics.variables
        metrics = zip(metric_variables, metric_values, strict=True)
        with (
            temporary_values(self.hyperparameters.variables, hyperparameters),
            self._open_scope(values, metrics) as scope,
        ):
            predicted = self.model(x, training=False)
            loss = self.model.compute_loss(x, y, predicted, training=False)
            self.metrics.update(y, predicted)
        return loss, [scope.get_current_value(variable) for variable in metric_variables]

    def _outputs(self, values: Values, inputs: list[Any]) -> list[Any]:
        with self._open_scope(values):
            outputs = self.model(unwrap_single(inputs), training=False)
        return jax.tree.leaves(outputs)

    def _open_scope(
        self, values: Values, extra: Iterable[tuple[Any, Any]] = ()
    ) -> keras.StatelessScope:
        """Return a scope in which Keras' variables have these values and change without effect.

        Args:
            extra: further variables with their values.
        """
        return keras.StatelessScope(
            [*zip(self.variables, values, strict=True), *extra], collect_losses=True
        )


def _sum_losses(losses: Losses, rows: npt.NDArray[np.int64]) -> float:
    """Return the sum of mean batch losses times the rows of each batch."""
    with convert_memory_errors():
        means = [np.ravel(np.asarray(array, np.float64))[:count] for array, count in losses]
    return float(np.concatenate(means) @ rows)
