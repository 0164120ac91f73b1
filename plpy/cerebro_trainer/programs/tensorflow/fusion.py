"""Several states of one program trained as one by TensorFlow: each operation is done for all of
them at once.

A small network's step is mostly what is around its arithmetic, which so many states share.
`tf.vectorized_map` makes of the operations of a step those of as many steps, and XLA compiles the
loop over the batches of a buffer as a whole, as in the form `xla_loop`. It computes each lane of an
operation by itself, so what becomes of a state depends on how many lanes there are alone: not on
its place, nor on what is in the others, be it NaN. States that are fewer are filled up with copies
of the first. The last, smaller batch of a buffer is a loop of one step; each size of it compiles
once.

An operation that TensorFlow cannot do for several lanes at once is an error while the loop is
traced.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras.src.optimizers.base_optimizer import BaseOptimizer
from tensorflow.python.ops.parallel_for import pfor

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import Array, Columns, pad_rows, pad_to_capacity
from cerebro_trainer.models import keras_model
from cerebro_trainer.programs.fusion import Member, StackedFusion
from cerebro_trainer.programs.io_spec import IoSpec
from cerebro_trainer.programs.keras_program import KerasProgram

DRAWS = (
    "StatelessRandomGetKeyCounter",
    "StatelessRandomNormalV2",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformIntV2",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormalV2",
)
"""The operations by which Keras draws, each from a seed of its own; TensorFlow does not know them
for several.
"""

Values: TypeAlias = list[Any]
Orders: TypeAlias = Sequence[npt.NDArray[np.int32]]


def fusable(program: KerasProgram) -> bool:
    """Whether TensorFlow knows a step of the program for several states, so far as can be said
    without tracing one.

    It has convolutions by filters that are all the same only. Conditions of an optimizer, such as
    whether it is time to apply what was accumulated, would change variables; so does one that
    scales the loss.
    """
    optimizer = program.optimizer
    conditional = (
        isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        or optimizer.gradient_accumulation_steps
        or optimizer.use_ema
    )
    return program.trainable and not conditional and not keras_model.convolves(program.model)


class _Rules(keras.optimizers.Optimizer):  # type: ignore[misc]
    """Optimizers with Keras' own ways instead of TensorFlow's, which want variables where a step
    has values.
    """

    assign = BaseOptimizer.assign
    _apply_weight_decay = BaseOptimizer._apply_weight_decay
    _backend_update_step = BaseOptimizer._backend_update_step
    _var_key = BaseOptimizer._var_key

    # What changes an embedding may be of the rows alone that were looked up.
    def assign_add(self, variable: Any, value: Any) -> None:
        variable.assign_add(tf.convert_to_tensor(value))

    def assign_sub(self, variable: Any, value: Any) -> None:
        variable.assign_sub(tf.convert_to_tensor(value))


def _ruled(optimizer: Any, trained: Sequence[Any]) -> Any:
    """The optimizer with such ways, which come behind those of its class; both have the same
    variables.
    """
    kind = type(optimizer)
    made: Any = object.__new__(type(kind.__name__, (kind, _Rules), {}))
    places = {made._var_key(variable): place for place, variable in enumerate(trained)}
    vars(made).update(vars(optimizer), _trainable_variables_indices=places)
    return made


class PureStep:
    """One optimizer step of a program on one batch, of values to values; the program's variables
    stay as they are.
    """

    def __init__(self, program: KerasProgram) -> None:
        self._program = program
        self._optimizer = _ruled(program.optimizer, program.trained_variables)

    def __call__(self, lane: tuple[Values, Values, Values, Values]) -> tuple[Values, Any]:
        """The new values, and the loss before the step, of numbers, values, inputs and targets."""
        numbers, values, *batch = lane
        program, optimizer = self._program, self._optimizer
        variables = [*program.hyperparameters.variables, *program.variables]
        with keras.StatelessScope(
            zip(variables, [*numbers, *values], strict=True), collect_losses=True
        ) as scope:
            weights = [scope.get_current_value(variable) for variable in program.trained_variables]
            with tf.GradientTape() as tape:
                tape.watch(weights)
                x, y, row_weights = program.make_arguments(*batch)
                loss = program.model.compute_loss(
                    x, y, program.model(x, training=True), row_weights, training=True
                )
                scaled = optimizer.scale_loss(loss)
            with program.cache_learning_rate(optimizer):
                optimizer.apply(tape.gradient(scaled, weights), program.trained_variables)
            return [scope.get_current_value(variable) for variable in program.variables], loss


class FusedLoop:
    """A program's loop over batches of rows, for so many states at once."""

    def __init__(self, program: KerasProgram, lanes: int) -> None:
        self.lanes = lanes
        self._step = PureStep(program)
        self._loops: dict[int, Any] = {}

    def run(
        self,
        numbers: Values,
        values: Values,
        columns: Columns,
        orders: Array,
        batch_size: int,
        batches: int,
    ) -> tuple[Values, Any]:
        """So many batches of the rows in each order; the new values, and the sum of losses times
        rows of each lane.
        """
        if batch_size not in self._loops:
            loop = partial(self._loop, batch_size)
            self._loops[batch_size] = tf.function(loop, autograph=False, jit_compile=True)
        found: tuple[Values, Any] = self._loops[batch_size](
            numbers, values, *columns, orders, np.int32(batches)
        )
        return found

    def _loop(
        self,
        size: int,
        numbers: Values,
        values: Values,
        inputs: Values,
        targets: Values,
        orders: Any,
        batches: Any,
    ) -> tuple[Values, Any]:
        def body(done: Any, values: Values, total: Any) -> tuple[Any, Values, Any]:
            chosen = tf.slice(orders, [0, done * size], [self.lanes, size])
            parts = [[tf.gather(array, chosen) for array in arrays] for arrays in (inputs, targets)]
            with _silent():
                found, loss = tf.vectorized_map(
                    self._step, (numbers, values, *parts), fallback_to_while_loop=False
                )
            return done + 1, found, total + tf.cast(loss, tf.float64) * size

        start = 0, values, tf.zeros(self.lanes, tf.float64)
        _, found, total = tf.while_loop(
            lambda done, *_: done < batches, body, start, parallel_iterations=1
        )
        return found, total


class TensorflowFusion(StackedFusion):
    """States of a program that are trained by such a loop."""

    def __init__(self, fused: FusedLoop, io_spec: IoSpec, members: Sequence[Member]) -> None:
        super().__init__(fused.lanes, io_spec, members)
        self._fused = fused

    def train_lanes(
        self, buffer: Buffer, orders: Orders, batch_size: int
    ) -> npt.NDArray[np.float64]:
        columns, first = pad_to_capacity(self.io_spec.convert(buffer), orders[0])
        rows = len(orders[0])
        batches, rest = divmod(rows, batch_size)
        total = np.zeros(len(orders))
        for begin, size, count in ((0, batch_size, batches), (rows - rest, rest, 1)):
            if size and count:
                chosen = np.stack(
                    [pad_rows(order[begin : begin + size * count], len(first)) for order in orders]
                )
                self.values, losses = self._fused.run(
                    self.hyperparameters, self.values, columns, chosen, size, count
                )
                total += losses.numpy()
        return total


@contextmanager
def _silent() -> Iterator[None]:
    """TensorFlow prints pages about an operation that it cannot do for several lanes, beside the
    error.
    """
    logger: logging.Logger = tf.get_logger()
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _lane_by_lane(operation: Any) -> list[Any]:
    """An operation of vectorized_map, repeated for each lane: so each draws what it would draw
    alone.
    """
    lanes = int(tf.get_static_value(operation.pfor.loop_len_vector)[0])
    types, attributes = [output.dtype for output in operation.outputs], operation.op.node_def.attr
    found = [
        pfor._create_op(
            operation.op_type,
            [_of_lane(given, lane) for given in operation.inputs],
            types,
            attributes,
        )
        for lane in range(lanes)
    ]
    return [
        pfor.wrap(tf.stack(parts), True)
        for parts in zip(*(each.outputs for each in found), strict=True)
    ]


def _of_lane(given: Any, lane: int) -> Any:
    value, stacked, _ = given
    return value[lane] if stacked else value


for name in DRAWS:
    with suppress(KeyError):  # TensorFlow knows it by now
        pfor.RegisterPFor(name)(_lane_by_lane)
