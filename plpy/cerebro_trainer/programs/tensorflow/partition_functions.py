"""TensorFlow graphs of the pieces of a network, and a training step over all pieces.

Each piece has graphs of its own, however many pieces a shard has. TensorFlow's optimizations of a
graph depend on its content, and the last bits of a result depend on the optimizations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from cerebro_trainer.models.keras_model import unwrap_single
from cerebro_trainer.programs.keras_program import KerasProgram, Tensors


class PieceFunctions:
    """The graphs of a piece: forward, for training and otherwise, and backward with its update.

    The inputs of a piece are a list of tensors: all inputs of the network, or the output of the
    piece before.

    Args:
        target_types: types of the network's targets.
        weight_type: type of the weights of rows.
    """

    def __init__(
        self,
        program: KerasProgram,
        model: keras.Model,
        target_types: Sequence[Any],
        weight_type: Any,
    ) -> None:
        self.model = model
        self._program = program
        inputs = [tf.TensorSpec((None, *tensor.shape[1:]), tensor.dtype) for tensor in model.inputs]
        output = tf.TensorSpec((None, *model.outputs[0].shape[1:]), model.outputs[0].dtype)
        targets = list(target_types)
        self.forward = _make_graph(self._forward, inputs)
        self.infer = _make_graph(self._infer, inputs)
        self.evaluate = _make_graph(self._evaluate, inputs, targets)
        self.backward = _make_graph(self._backward, inputs, output)
        self._turn_around_graphs = {
            len(types): _make_graph(self._turn_around, inputs, types)
            for types in (targets, [*targets, weight_type])
        }

    def turn_around(self, inputs: Tensors, targets: Tensors) -> Any:
        """Compute loss and gradients of the last piece, and update its weights.

        Args:
            targets: the weights of rows may follow them.

        Returns:
            The loss, the penalties of the piece's weights, and the gradient of its input.
        """
        return self._turn_around_graphs[len(targets)](inputs, targets)

    def _forward(self, inputs: Tensors) -> Any:
        return self._call(inputs, training=True)

    def _call(self, inputs: Tensors, training: bool) -> tuple[Any, Tensors]:
        """Return the outputs of the piece, and the penalties of its weights."""
        outputs = self.model(unwrap_single(inputs), training=training)
        return outputs, list(self.model.losses)

    def _infer(self, inputs: Tensors) -> Any:
        outputs, penalties = self._call(inputs, training=False)
        return tf.nest.flatten(outputs), penalties

    def _evaluate(self, inputs: Tensors, targets: Tensors) -> Any:
        """Add a batch to the metrics; return its loss and penalties, for the last piece."""
        _, y, _ = self._program.make_arguments([], targets)
        predicted = self.model(unwrap_single(inputs), training=False)
        loss = self._program.model._compile_loss(y, predicted, None)
        self._program.metrics.update(y, predicted)
        return loss, list(self.model.losses)

    def _backward(self, inputs: Tensors, gradient: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs, penalties = self._call(inputs, training=True)
        ones = [tf.ones_like(penalty) for penalty in penalties]
        return self._update_weights(tape, inputs, [outputs, *penalties], [gradient, *ones])

    def _turn_around(self, inputs: Tensors, targets: Tensors) -> Any:
        _, y, weights = self._program.make_arguments([], targets)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = self._program.model._compile_loss(
                y, self.model(unwrap_single(inputs), training=True), weights
            )
            penalties = list(self.model.losses)
        return loss, penalties, self._update_weights(tape, inputs, [loss, *penalties], None)

    def _update_weights(
        self, tape: Any, inputs: Tensors, outputs: Tensors, output_gradients: Tensors | None
    ) -> Any:
        """Update the piece's weights with their gradients; return the gradient of its input."""
        trained = self.model.trainable_variables
        gradients = tape.gradient(outputs, [*inputs, *trained], output_gradients=output_gradients)
        input_gradient = gradients[0]
        weight_gradients = gradients[len(inputs) :]
        if any(gradient is not None for gradient in weight_gradients):
            with self._program.cache_learning_rate():
                self._program.optimizer.apply_gradients(zip(weight_gradients, trained, strict=True))
        return tf.zeros_like(inputs[0]) if input_gradient is None else input_gradient


def _make_graph(function: Any, *signature: Any) -> Any:
    # The partial avoids TensorFlow's warning of a method that is traced again, for each piece.
    return tf.function(partial(function), autograph=False, input_signature=signature)


class ForwardPass:
    """Several batches on their way through the pieces, without training."""

    def __init__(self, pieces: Sequence[PieceFunctions], batches: Sequence[Tensors]) -> None:
        self._pieces = pieces
        self._inputs = list(batches)
        """Inputs of the next piece, by batch."""
        self._penalties: list[Tensors] = [[] for _ in batches]

    def go_forward(self, shard: range) -> float:
        """Replace the inputs by the outputs of a shard's pieces."""
        for number in shard:
            for batch, inputs in enumerate(self._inputs):
                self._inputs[batch], penalties = self._pieces[number].infer(inputs)
                self._penalties[batch] += penalties
        return 0.0

    def stop_before_last_piece(self, shard: range) -> list[tuple[Tensors, Tensors]]:
        """Go forward in the last shard; return the last piece's inputs and the penalties so far."""
        self.go_forward(shard[:-1])
        return list(zip(self._inputs, self._penalties, strict=True))


class TrainingStep:
    """A training step on one batch, piece by piece.

    Args:
        common: variables of the optimizer that belong to no weight.
        first_trained: number of the first piece with weights to train.
    """

    def __init__(
        self,
        pieces: Sequence[PieceFunctions],
        common: Sequence[Any],
        first_trained: int,
        inputs: Sequence[Any],
        targets: Tensors,
    ) -> None:
        self._pieces = pieces
        self._common = common
        self._first_trained = first_trained
        self._targets = targets
        self._inputs: list[Tensors] = [[tf.constant(array) for array in inputs]]
        """Inputs of the pieces that have not gone backward yet, in order."""
        self._penalties: Tensors = []
        self._gradient: Any = None
        self._common_values: Tensors | None = None

    def go_forward(self, shard: range) -> float:
        """Compute the outputs of a shard's pieces.

        Pieces with gradients run again on the way back, so their other variables, such as the
        states of random generators, are restored.
        """
        for number in shard:
            piece = self._pieces[number]
            restored = []
            if number >= self._first_trained:
                restored = piece.model.non_trainable_variables
            values = [_read_value(variable) for variable in restored]
            output, penalties = piece.forward(self._inputs[-1])
            for variable, value in zip(restored, values, strict=True):
                set_value(variable, value)
            self._inputs.append([output])
            self._penalties += penalties
        return 0.0

    def turn_around(self, shard: range) -> float:
        """Go forward and backward in the last shard; return the batch loss times its rows."""
        self.go_forward(shard[:-1])
        self._restore_common()
        last_piece = self._pieces[-1]
        loss, penalties, self._gradient = last_piece.turn_around(self._inputs.pop(), self._targets)
        self._penalties += penalties
        self.go_backward(shard[:-1])
        total = keras.ops.sum([loss, *self._penalties]) if self._penalties else loss
        return float(total) * len(self._targets[0])

    def go_backward(self, shard: range) -> float:
        """Update the weights of a shard."""
        for number in reversed(shard):
            inputs = self._inputs.pop()
            if number >= self._first_trained:
                self._restore_common()
                self._gradient = self._pieces[number].backward(inputs, self._gradient)
        return 0.0

    def _restore_common(self) -> None:
        """Restore the common variables: all pieces take the same step of the optimizer."""
        if self._common_values is None:
            self._common_values = [_read_value(variable) for variable in self._common]
        for variable, value in zip(self._common, self._common_values, strict=True):
            set_value(variable, value)


def _read_value(variable: Any) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=variable.value.handle, dtype=variable.value.dtype)


def set_value(variable: Any, value: Any) -> None:
    """Give a variable a value, perhaps of another shape."""
    tf.raw_ops.AssignVariableOp(resource=variable.value.handle, value=value)
