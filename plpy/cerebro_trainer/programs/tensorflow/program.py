"""Programs on TensorFlow.

Training one state has three modes:

* `graph_loop`: one traced function loops over all batches of a buffer inside the graph. Its
  signature leaves the number of rows open, and order, batch size and learning rate are values
  instead of constants. One trace serves all buffers and all configs of a program.
* `xla_step`: such a loop over a step that XLA compiled, for which the batch size is a constant.
* `xla_loop`: the whole loop is compiled. The number of rows is a constant, too, so buffers are
  padded to one of a few capacities.

The last, smaller batch of a buffer is always trained as in `graph_loop`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import iterate_batches, join_batches, map_arrays, pad_to_capacity
from cerebro_trainer.models.keras_model import unwrap_single
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.attributions import Gradient
from cerebro_trainer.programs.fusion import LANES, Fusion, Member, Order
from cerebro_trainer.programs.keras_program import Forward, KerasProgram, Tensors
from cerebro_trainer.programs.learner import Sums
from cerebro_trainer.programs.metrics import flatten
from cerebro_trainer.programs.program import FALLBACK, PendingLoss
from cerebro_trainer.programs.tensorboard import Board
from cerebro_trainer.programs.tensorflow.event_files import EventFiles
from cerebro_trainer.programs.tensorflow.fusion import FusedLoop, TensorflowFusion, is_fusible
from cerebro_trainer.programs.tensorflow.philox_rng import use_philox
from cerebro_trainer.programs.tensorflow.update_kernels import use_update_kernels
from cerebro_trainer.wire.frames import Array, Arrays


class LargeNetwork(Exception):
    """The network may not fit into memory."""


MAX_BYTES_PER_PARAMETER = 24
"""A float32 weight, its gradient, and more slots than most optimizers have."""


class TensorflowProgram(KerasProgram):
    """A program whose loops are TensorFlow graphs.

    Args:
        available_bytes: memory that the program may take; None for no limit.

    Raises:
        LargeNetwork: the network may need more memory; none is allocated.
    """

    modes: tuple[str, ...] = ("graph_loop", "xla_step", "xla_loop")
    lanes = LANES
    compilation_factor = 5.0

    def __init__(self, spec: ProgramSpec, available_bytes: int | None = None) -> None:
        self._available_bytes = available_bytes
        super().__init__(spec, "tensorflow")
        inputs = [tf.TensorSpec((None, *shape), tf.float32) for shape in self.io_spec.inputs]
        self._input_types = inputs
        targets = [
            tf.TensorSpec((None, *output.target_shape), tf.int16 if output.classes else tf.float32)
            for output in self.io_spec.outputs
        ]
        self.target_types = targets
        """Types of the targets."""
        self.weighted_target_types = [*targets, tf.TensorSpec((None,), tf.float32)]
        """Types of the targets and of the weights of rows."""
        number = tf.TensorSpec((), tf.int32)
        order = tf.TensorSpec((None,), tf.int32)
        self._train = {
            len(types): tf.function(
                self._train_loop, autograph=False, input_signature=[inputs, types, order, number]
            )
            for types in (self.target_types, self.weighted_target_types)
        }
        self._compiled_step = tf.function(self._step, autograph=False, jit_compile=True)
        self._full_loops: dict[tuple[str, int], Any] = {}
        if not is_fusible(self):
            self.lanes = {}
        self._fused = {mode: FusedLoop(self, lanes) for mode, lanes in self.lanes.items()}
        self._evaluate = tf.function(
            self._evaluate_loop, autograph=False, input_signature=[inputs, targets, number]
        )
        self._forward = tf.function(self._outputs, autograph=False, input_signature=[inputs])

    def check_size(self, parameters: int) -> None:
        available = self._available_bytes
        if available is not None and parameters * MAX_BYTES_PER_PARAMETER > available:
            raise LargeNetwork
        super().check_size(parameters)

    def read_variable(self, variable: Any) -> Array:
        # Raw operations, because Keras takes five times as long. The array shares the variable's
        # memory, which TensorFlow then no longer changes in place.
        inner = variable.value
        return np.asarray(tf.raw_ops.ReadVariableOp(resource=inner.handle, dtype=inner.dtype))

    def assign(self, position: int, value: Array) -> None:
        tf.raw_ops.AssignVariableOp(resource=self.variables[position].value.handle, value=value)

    def dispatch(self, buffer: Buffer, order: Order, batch_size: int, mode: str) -> PendingLoss:
        if mode in self.lanes:
            return self.train_in_lanes(buffer, order, batch_size, mode)
        loss = self._train_pass(buffer, order, batch_size, mode)
        return lambda: loss

    def _train_pass(self, buffer: Buffer, order: Order, batch_size: int, mode: str) -> float:
        """Train one pass in a mode that trains one state; see `train`."""
        inputs, targets = self.io_spec.convert(buffer)
        if mode == FALLBACK:
            return self.fit_with_keras(inputs, targets, order, batch_size)
        batches = 0 if mode == "graph_loop" else len(order) // batch_size
        total = 0.0
        if batches:
            loop = self._get_full_loop(mode, batch_size)
            if mode == "xla_loop":
                (loop_inputs, loop_targets), loop_order = pad_to_capacity((inputs, targets), order)
                total = float(loop(loop_inputs, loop_targets, loop_order, np.int32(batches)))
            else:
                total = float(loop(inputs, targets, order, np.int32(batches)))
        last_order = order[batches * batch_size :]
        if len(last_order) and math.isfinite(total):
            train = self._train[len(targets)]
            total += float(train(inputs, targets, last_order, np.int32(batch_size)))
        return total

    def _get_full_loop(self, mode: str, batch_size: int) -> Any:
        """Return the loop over full batches of a mode that XLA compiles."""
        key = (mode, batch_size)
        if key not in self._full_loops:
            step = self._compiled_step if mode == "xla_step" else self._step
            self._full_loops[key] = tf.function(
                partial(self._full_loop, step, batch_size),
                autograph=False,
                jit_compile=mode == "xla_loop",
                reduce_retracing=mode == "xla_step",
            )
        return self._full_loops[key]

    def fuse(self, members: Sequence[Member], mode: str) -> Fusion:
        return TensorflowFusion(self._fused[mode], self.io_spec, members)

    def evaluate(self, buffer: Buffer) -> Sums:
        inputs, targets = self.io_spec.convert(buffer)
        batch_size = self.choose_evaluation_batch(inputs)
        total, sums = self._evaluate(inputs, targets, np.int32(batch_size))
        return [[float(total), float(buffer.rows)], *flatten(sums)]

    def predict(self, inputs: Arrays) -> list[Array]:
        arrays = self.io_spec.convert_inputs(inputs)
        batch_size = self.choose_prediction_batch(arrays)
        return join_batches(map(self._forward, iterate_batches(arrays, batch_size)))

    def compile_gradient(self, model: keras.Model) -> Gradient:
        def compute_gradient(points: Tensors, other_inputs: Tensors, unit_weights: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(points)
                output = model(unwrap_single([*points, *other_inputs]), training=False)
                units = tf.reshape(tf.cast(output, tf.float32), tf.shape(unit_weights))
                total = tf.reduce_sum(units * unit_weights)
            return tape.gradient(total, points, unconnected_gradients=tf.UnconnectedGradients.ZERO)

        graph = tf.function(compute_gradient, autograph=False, reduce_retracing=True)
        return lambda *arrays: [gradient.numpy() for gradient in graph(*arrays)]

    def compile_forward(self, model: keras.Model) -> Forward:
        graph = tf.function(
            lambda arrays: tf.cast(model(unwrap_single(arrays), training=False), tf.float32),
            autograph=False,
            input_signature=[self._input_types],
        )

        def forward(arrays: Arrays) -> Array:
            batch_size = self.choose_evaluation_batch(arrays)
            batches = iterate_batches(arrays, batch_size)
            return np.concatenate([graph(batch).numpy() for batch in batches])

        return forward

    def open_board(self, folder: str) -> Board:
        return EventFiles(folder, self.model, lambda: self._forward.get_concrete_function().graph)

    def _train_loop(self, inputs: Tensors, targets: Tensors, order: Any, batch_size: Any) -> Any:
        rows = tf.size(order)

        def is_unfinished(begin: Any, total: Any) -> Any:
            return (begin < rows) & tf.math.is_finite(total)

        def train_batch(begin: Any, total: Any) -> tuple[Any, Any]:
            positions = order[begin : begin + batch_size]
            batch = map_arrays((inputs, targets), lambda array: tf.gather(array, positions))
            with use_update_kernels(self._inner_optimizer):
                loss = self._step(*batch)
            batch_rows = tf.cast(tf.size(positions), tf.float64)
            return begin + batch_size, total + tf.cast(loss, tf.float64) * batch_rows

        # One iteration at a time: parallel ones would race for the variables.
        start = (0, tf.zeros((), tf.float64))
        return tf.while_loop(is_unfinished, train_batch, start, parallel_iterations=1)[1]

    def _full_loop(
        self,
        step: Any,
        batch_size: int,
        inputs: Tensors,
        targets: Tensors,
        order: Any,
        batches: Any,
    ) -> Any:
        def is_unfinished(position: Any, total: Any) -> Any:
            return (position < batches) & tf.math.is_finite(total)

        def train_batch(position: Any, total: Any) -> tuple[Any, Any]:
            positions = tf.slice(order, [position * batch_size], [batch_size])
            batch = map_arrays((inputs, targets), lambda array: tf.gather(array, positions))
            with use_philox():
                loss = step(*batch)
            return position + 1, total + tf.cast(loss, tf.float64) * batch_size

        start = (0, tf.zeros((), tf.float64))
        return tf.while_loop(is_unfinished, train_batch, start, parallel_iterations=1)[1]

    def _step(self, inputs: Tensors, targets: Tensors) -> Any:
        """Take one optimizer step on one batch; return the loss before it."""
        x, y, weights = self.make_arguments(inputs, targets)
        with tf.GradientTape() as tape:
            loss = self.model.compute_loss(
                x, y, self.model(x, training=True), weights, training=True
            )
            scaled_loss = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled_loss, self.trained_variables)
        with self.cache_learning_rate():
            self.optimizer.apply_gradients(zip(gradients, self.trained_variables, strict=True))
        return loss

    def _evaluate_loop(
        self, inputs: Tensors, targets: Tensors, batch_size: Any
    ) -> tuple[Any, list[Tensors]]:
        # All in one call: each operation outside of it takes as long as a small batch.
        rows = tf.shape(inputs[0])[0]
        self.metrics.reset()

        def evaluate_batch(begin: Any, total: Any) -> tuple[Any, Any]:
            end = tf.minimum(begin + batch_size, rows)
            x, y, _ = self.make_arguments(
                [array[begin:end] for array in inputs], [array[begin:end] for array in targets]
            )
            predicted = self.model(x, training=False)
            loss = self.model.compute_loss(x, y, predicted, training=False)
            self.metrics.update(y, predicted)
            return end, total + tf.cast(loss, tf.float64) * tf.cast(end - begin, tf.float64)

        start = (0, tf.zeros((), tf.float64))
        _, total = tf.while_loop(
            lambda begin, _: begin < rows, evaluate_batch, start, parallel_iterations=1
        )
        return total, self.metrics.read_tensors()

    def _outputs(self, inputs: Tensors) -> Tensors:
        return tf.nest.flatten(self.model(unwrap_single(inputs), training=False))  # type: ignore[no-any-return]
