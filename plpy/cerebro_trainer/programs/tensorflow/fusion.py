"""Fusion on TensorFlow: several states of one program trained at once, each operation done for all.

Most of a small network's step is call overhead, which the states share. `tf.vectorized_map` turns
the operations of a step into operations on several states. XLA compiles the loop over the batches
of a buffer as a whole, as in the mode `xla_loop`, and computes each lane of an operation by itself.
A state therefore depends on the number of lanes alone: neither on its own lane nor on the other
states, even if they are NaN. Unused lanes are copies of the first state. The last, smaller batch of
a buffer is a loop of one step; each size of it compiles once.

If TensorFlow cannot vectorize an operation, tracing the loop raises an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf
from keras.src.optimizers.base_optimizer import BaseOptimizer
from tensorflow.python.ops.parallel_for import pfor

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import Columns, map_arrays, pad_rows, pad_to_capacity
from cerebro_trainer.models import keras_model
from cerebro_trainer.programs.fusion import LaneLosses, Orders, StackedFusion
from cerebro_trainer.programs.keras_program import KerasProgram
from cerebro_trainer.wire.frames import Array

RANDOM_OPERATIONS = (
    "StatelessRandomGetKeyCounter",
    "StatelessRandomNormalV2",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformIntV2",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormalV2",
)
"""Operations by which Keras draws, each with a seed; TensorFlow cannot vectorize them."""

Values: TypeAlias = list[Any]
StepResult: TypeAlias = tuple[Values, Any]
"""New values of all variables, and the loss."""


def is_fusible(program: KerasProgram) -> bool:
    """Return whether TensorFlow can probably vectorize a step of the program; nothing is traced.

    It can vectorize convolutions only if all states have the same filters. Conditions of an
    optimizer would change variables: accumulated gradients, averages, and a scaled loss.
    """
    optimizer = program.optimizer
    if not program.trainable or isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return False
    if optimizer.gradient_accumulation_steps or optimizer.use_ema:
        return False
    return not keras_model.has_convolution(program.model)


class _PureOptimizer(keras.optimizers.Optimizer):  # type: ignore[misc]
    """Keras' own methods in place of TensorFlow's, which require variables instead of values."""

    assign = BaseOptimizer.assign
    _apply_weight_decay = BaseOptimizer._apply_weight_decay
    _backend_update_step = BaseOptimizer._backend_update_step
    _var_key = BaseOptimizer._var_key

    # The gradient of an embedding may consist of the rows alone that were looked up.
    def assign_add(self, variable: Any, value: Any) -> None:
        variable.assign_add(tf.convert_to_tensor(value))

    def assign_sub(self, variable: Any, value: Any) -> None:
        variable.assign_sub(tf.convert_to_tensor(value))


def _make_pure_optimizer(optimizer: Any, trained: Sequence[Any]) -> Any:
    """Return a copy of an optimizer with these methods; both have the same variables."""
    cls = type(optimizer)
    # The methods come last in the order of resolution, after those of the class itself.
    copy: Any = object.__new__(type(cls.__name__, (cls, _PureOptimizer), {}))
    positions = {copy._var_key(variable): position for position, variable in enumerate(trained)}
    vars(copy).update(vars(optimizer), _trainable_variables_indices=positions)
    return copy


class PureStep:
    """An optimizer step on one batch as a function of values; the variables keep theirs."""

    def __init__(self, program: KerasProgram) -> None:
        self._program = program
        self._optimizer = _make_pure_optimizer(program.optimizer, program.trained_variables)

    def __call__(self, lane: tuple[Values, Values, Values, Values]) -> StepResult:
        """Return the new values, and the loss before the step.

        Args:
            lane: hyperparameters, values, inputs and targets of one state.
        """
        hyperparameters, values, inputs, targets = lane
        program = self._program
        optimizer = self._optimizer
        variables = [*program.hyperparameters.variables, *program.variables]
        scope_values = zip(variables, [*hyperparameters, *values], strict=True)
        with keras.StatelessScope(scope_values, collect_losses=True) as scope:
            weights = [scope.get_current_value(variable) for variable in program.trained_variables]
            with tf.GradientTape() as tape:
                tape.watch(weights)
                x, y, row_weights = program.make_arguments(inputs, targets)
                loss = program.model.compute_loss(
                    x, y, program.model(x, training=True), row_weights, training=True
                )
                scaled_loss = optimizer.scale_loss(loss)
            with program.cache_learning_rate(optimizer):
                optimizer.apply(tape.gradient(scaled_loss, weights), program.trained_variables)
            return [scope.get_current_value(variable) for variable in program.variables], loss


class FusedLoop:
    """A program's loop over batches of rows, for several states at once."""

    def __init__(self, program: KerasProgram, lanes: int) -> None:
        self.lanes = lanes
        self._step = PureStep(program)
        self._loops: dict[int, Any] = {}

    def run(
        self,
        states: tuple[Values, Values],
        columns: Columns,
        orders: Array,
        batch_size: int,
        batches: int,
    ) -> StepResult:
        """Train batches of rows in each lane's order.

        Args:
            states: hyperparameters and values of all lanes.

        Returns:
            The new values, and by lane the sum of losses times rows.
        """
        if batch_size not in self._loops:
            loop = partial(self._loop, batch_size)
            self._loops[batch_size] = tf.function(loop, autograph=False, jit_compile=True)
        result: StepResult = self._loops[batch_size](*states, *columns, orders, np.int32(batches))
        return result

    def _loop(
        self,
        batch_size: int,
        hyperparameters: Values,
        values: Values,
        inputs: Values,
        targets: Values,
        orders: Any,
        batches: Any,
    ) -> StepResult:
        def train_batch(position: Any, values: Values, total: Any) -> tuple[Any, Values, Any]:
            positions = tf.slice(orders, [0, position * batch_size], [self.lanes, batch_size])
            batch = map_arrays((inputs, targets), lambda array: tf.gather(array, positions))
            with _mute_logger():
                new_values, loss = tf.vectorized_map(
                    self._step, (hyperparameters, values, *batch), fallback_to_while_loop=False
                )
            return position + 1, new_values, total + tf.cast(loss, tf.float64) * batch_size

        start = (0, values, tf.zeros(self.lanes, tf.float64))
        _, new_values, total = tf.while_loop(
            lambda position, *_: position < batches, train_batch, start, parallel_iterations=1
        )
        return new_values, total


class TensorflowFusion(StackedFusion):
    """States of a program that a FusedLoop trains."""

    def train_lanes(self, buffer: Buffer, orders: Orders, batch_size: int) -> LaneLosses:
        columns, first_order = pad_to_capacity(self.io_spec.convert(buffer), orders[0])
        capacity = len(first_order)
        rows = len(orders[0])
        batches, last_rows = divmod(rows, batch_size)
        total = np.zeros(len(orders))
        for begin, size, count in ((0, batch_size, batches), (rows - last_rows, last_rows, 1)):
            if not size or not count:
                continue
            end = begin + size * count
            lane_orders = np.stack([pad_rows(order[begin:end], capacity) for order in orders])
            self.values, losses = self.fused.run(
                (self.hyperparameters, self.values), columns, lane_orders, size, count
            )
            total += losses.numpy()
        return total


@contextmanager
def _mute_logger() -> Iterator[None]:
    """Mute TensorFlow, which prints pages about an operation that it cannot vectorize."""
    logger: logging.Logger = tf.get_logger()
    was_disabled = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = was_disabled


def _repeat_per_lane(operation: Any) -> list[Any]:
    """Vectorize an operation by repeating it for each lane, which then draws as it would alone."""
    lanes = int(tf.get_static_value(operation.pfor.loop_len_vector)[0])
    dtypes = [output.dtype for output in operation.outputs]
    copies = [
        pfor._create_op(
            operation.op_type,
            [_select_lane(operand, lane) for operand in operation.inputs],
            dtypes,
            operation.op.node_def.attr,
        )
        for lane in range(lanes)
    ]
    outputs = zip(*(copy.outputs for copy in copies), strict=True)
    return [pfor.wrap(tf.stack(lane_outputs), True) for lane_outputs in outputs]


def _select_lane(operand: Any, lane: int) -> Any:
    value, is_stacked, _ = operand
    return value[lane] if is_stacked else value


for name in RANDOM_OPERATIONS:
    with suppress(KeyError):  # newer releases of TensorFlow may vectorize it themselves
        pfor.RegisterPFor(name)(_repeat_per_lane)
