"""Programs on TensorFlow; what trains several states at once is in `tensorflow_fusion`.

Training has three forms. In `graph_loop` one traced function loops over all batches of a buffer
inside the graph. Its signature leaves the number of rows open, and order, batch size and learning
rate are values, not constants, so one trace serves all buffers and all configs of a program.
`xla_step` is such a loop over a step that XLA compiled, `xla_loop` is a loop compiled as a whole:
XLA wants the batch size as a constant, and the latter also the number of rows, so buffers are
padded up to a common one. The last, smaller batch of a buffer is always left to `graph_loop`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import pad_to_capacity
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.attributions import Gradient
from cerebro_trainer.programs.fusion import LANES, Fusion, Member
from cerebro_trainer.programs.keras_program import KerasProgram
from cerebro_trainer.programs.metrics import flatten, pack
from cerebro_trainer.programs.program import (
    FALLBACK,
    Array,
    PendingLoss,
    Sums,
)
from cerebro_trainer.programs.tensorboard import Board
from cerebro_trainer.programs.tensorflow.event_files import EventFiles
from cerebro_trainer.programs.tensorflow.fusion import FusedLoop, TensorflowFusion, fusable
from cerebro_trainer.programs.tensorflow.philox_rng import philox_draws
from cerebro_trainer.programs.tensorflow.update_kernels import update_kernels


class LargeNetwork(Exception):
    """It may not fit into memory."""


MOST_BYTES_PER_PARAMETER = 24
"""A float32 weight, its gradient, and more slots than most optimizers have."""


class TensorflowProgram(KerasProgram):
    """A program whose loops are TensorFlow graphs."""

    modes: tuple[str, ...] = ("graph_loop", "xla_step", "xla_loop")
    lanes: Mapping[str, int] = LANES
    compilation_factor = 5.0

    def __init__(self, spec: ProgramSpec, room: int | None = None) -> None:
        """LargeNetwork where it may not fit into so many bytes, before any are taken; None is any
        number.
        """
        self._bytes_left = room
        super().__init__(spec, "tensorflow")
        inputs = [tf.TensorSpec((None, *shape), tf.float32) for shape in self.io_spec.inputs]
        targets = [
            tf.TensorSpec((None, *output.target_shape), tf.int16 if output.classes else tf.float32)
            for output in self.io_spec.outputs
        ]
        self.signature = [*targets, tf.TensorSpec((None,), tf.float32)]
        """The types of targets, and of weights of rows."""
        number, order = tf.TensorSpec((), tf.int32), tf.TensorSpec((None,), tf.int32)
        self._train = {
            len(arrays): tf.function(
                self._train_loop, autograph=False, input_signature=[inputs, arrays, order, number]
            )
            for arrays in (targets, self.signature)
        }
        self._compiled_step = tf.function(self._step, autograph=False, jit_compile=True)
        self._full_batches: dict[tuple[str, int], Any] = {}
        if not fusable(self):
            self.lanes = {}
        self._fused = {form: FusedLoop(self, lanes) for form, lanes in self.lanes.items()}
        self._evaluate = tf.function(
            self._evaluate_loop, autograph=False, input_signature=[inputs, targets, number]
        )
        self._forward = tf.function(self._outputs, autograph=False, input_signature=[inputs])

    def check_size(self, parameters: int) -> None:
        if (
            self._bytes_left is not None
            and parameters * MOST_BYTES_PER_PARAMETER > self._bytes_left
        ):
            raise LargeNetwork
        super().check_size(parameters)

    def read_variable(self, variable: Any) -> Array:
        # Raw operations, because Keras' way takes five times as long. The array shares the
        # variable's memory, which TensorFlow then no longer changes in place.
        inner = variable.value
        return np.asarray(tf.raw_ops.ReadVariableOp(resource=inner.handle, dtype=inner.dtype))

    def assign(self, position: int, value: Array) -> None:
        tf.raw_ops.AssignVariableOp(resource=self.variables[position].value.handle, value=value)

    def dispatch(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> PendingLoss:
        if form in self.lanes:
            return partial(float, self.train_in_lanes(buffer, order, batch_size, form))
        loss = self._trained(buffer, order, batch_size, form)
        return lambda: loss

    def _trained(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> float:
        """See `train`."""
        inputs, targets = self.io_spec.convert(buffer)
        if form == FALLBACK:
            return self.fit_with_keras(inputs, targets, order, batch_size)
        batches = 0 if form == "graph_loop" else len(order) // batch_size
        total = (
            self._train_full(inputs, targets, order, (form, batch_size, batches))
            if batches
            else 0.0
        )
        rest = order[batches * batch_size :]
        if len(rest) and math.isfinite(total):
            total += float(self._train[len(targets)](inputs, targets, rest, np.int32(batch_size)))
        return total

    def _train_full(
        self,
        inputs: list[Array],
        targets: list[Array],
        order: npt.NDArray[np.int32],
        how: tuple[str, int, int],
    ) -> float:
        """Train the full batches of a buffer in a form that XLA compiles; `how`: form, batch size,
        batches.
        """
        form, batch_size, batches = how
        if (form, batch_size) not in self._full_batches:
            step = self._compiled_step if form == "xla_step" else self._step
            self._full_batches[form, batch_size] = tf.function(
                partial(self._full_loop, step, batch_size),
                autograph=False,
                jit_compile=form == "xla_loop",
                reduce_retracing=form == "xla_step",
            )
        if form == "xla_loop":
            (inputs, targets), order = pad_to_capacity((inputs, targets), order)
        return float(
            self._full_batches[form, batch_size](inputs, targets, order, np.int32(batches))
        )

    def fuse(self, members: Sequence[Member], form: str) -> Fusion:
        return TensorflowFusion(self._fused[form], self.io_spec, members)

    def evaluate(self, buffer: Buffer) -> Sums:
        inputs, targets = self.io_spec.convert(buffer)
        total, sums = self._evaluate(
            inputs, targets, np.int32(self.choose_evaluation_batch(inputs))
        )
        return [[float(total), float(buffer.rows)], *flatten(sums)]

    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        fitted = self.io_spec.convert_inputs(inputs)
        batch = self.choose_prediction_batch(fitted)
        starts = range(0, len(fitted[0]), batch)
        parts = [
            self._forward([array[start : start + batch] for array in fitted]) for start in starts
        ]
        return [
            np.concatenate([part[position].numpy() for part in parts])
            for position in range(len(self.io_spec.outputs))
        ]

    def compile_gradient(self, model: keras.Model) -> Gradient:
        def computed(points: list[Any], beside: list[Any], select: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(points)
                output = model(pack([*points, *beside]), training=False)
                chosen = tf.reduce_sum(
                    tf.reshape(tf.cast(output, tf.float32), tf.shape(select)) * select
                )
            return tape.gradient(chosen, points, unconnected_gradients=tf.UnconnectedGradients.ZERO)

        graph = tf.function(computed, autograph=False, reduce_retracing=True)
        return lambda *given: [array.numpy() for array in graph(*given)]

    def compile_forward(self, model: keras.Model) -> Callable[[list[Array]], Array]:
        inputs = [tf.TensorSpec((None, *shape), tf.float32) for shape in self.io_spec.inputs]
        graph = tf.function(
            lambda arrays: tf.cast(model(pack(arrays), training=False), tf.float32),
            autograph=False,
            input_signature=[inputs],
        )

        def computed(arrays: list[Array]) -> Array:
            batch = self.choose_evaluation_batch(arrays)
            starts = range(0, len(arrays[0]), batch)
            return np.concatenate(
                [graph([array[at : at + batch] for array in arrays]).numpy() for at in starts]
            )

        return computed

    def open_board(self, folder: str) -> Board:
        return EventFiles(folder, self.model, lambda: self._forward.get_concrete_function().graph)

    def _train_loop(
        self, inputs: list[Any], targets: list[Any], order: Any, batch_size: Any
    ) -> Any:
        rows = tf.size(order)

        def unfinished(begin: Any, total: Any) -> Any:
            return (begin < rows) & tf.math.is_finite(total)

        def body(begin: Any, total: Any) -> tuple[Any, Any]:
            chosen = order[begin : begin + batch_size]
            parts = [[tf.gather(array, chosen) for array in arrays] for arrays in (inputs, targets)]
            with update_kernels(self._inner_optimizer):
                loss = self._step(*parts)
            return begin + batch_size, total + tf.cast(loss, tf.float64) * tf.cast(
                tf.size(chosen), tf.float64
            )

        # One iteration at a time: several would race for the variables.
        return tf.while_loop(
            unfinished, body, (0, tf.zeros((), tf.float64)), parallel_iterations=1
        )[1]

    def _full_loop(
        self,
        step: Any,
        batch_size: int,
        inputs: list[Any],
        targets: list[Any],
        order: Any,
        batches: Any,
    ) -> Any:
        def unfinished(done: Any, total: Any) -> Any:
            return (done < batches) & tf.math.is_finite(total)

        def body(done: Any, total: Any) -> tuple[Any, Any]:
            chosen = tf.slice(order, [done * batch_size], [batch_size])
            parts = [[tf.gather(array, chosen) for array in arrays] for arrays in (inputs, targets)]
            with philox_draws():
                loss = step(*parts)
            return done + 1, total + tf.cast(loss, tf.float64) * batch_size

        return tf.while_loop(
            unfinished, body, (0, tf.zeros((), tf.float64)), parallel_iterations=1
        )[1]

    def _step(self, inputs: list[Any], targets: list[Any]) -> Any:
        x, y, weights = self.make_arguments(inputs, targets)
        with tf.GradientTape() as tape:
            loss = self.model.compute_loss(
                x, y, self.model(x, training=True), weights, training=True
            )
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trained_variables)
        with self.cache_learning_rate():
            self.optimizer.apply_gradients(zip(gradients, self.trained_variables, strict=True))
        return loss

    def _evaluate_loop(
        self, inputs: list[Any], targets: list[Any], batch_size: Any
    ) -> tuple[Any, list[list[Any]]]:
        # All in one call: each operation outside of it takes as long as a small batch.
        rows = tf.shape(inputs[0])[0]
        self.metrics.reset()

        def body(begin: Any, total: Any) -> tuple[Any, Any]:
            end = tf.minimum(begin + batch_size, rows)
            x, y, _ = self.make_arguments(
                [array[begin:end] for array in inputs], [array[begin:end] for array in targets]
            )
            predicted = self.model(x, training=False)
            loss = self.model.compute_loss(x, y, predicted, training=False)
            self.metrics.update(y, predicted)
            return end, total + tf.cast(loss, tf.float64) * tf.cast(end - begin, tf.float64)

        start = 0, tf.zeros((), tf.float64)
        _, total = tf.while_loop(lambda begin, _: begin < rows, body, start, parallel_iterations=1)
        return total, self.metrics.read_tensors()

    def _outputs(self, inputs: list[Any]) -> list[Any]:
        return tf.nest.flatten(self.model(pack(inputs), training=False))  # type: ignore[no-any-return]
