"""What TensorFlow compiles of a piece of a network, and a step of training over all pieces.

Each piece is a graph of its own, however many of them a shard has: what TensorFlow changes in a
graph when it optimizes it depends on what is in it, and with that the last bits of what it
computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from cerebro_trainer.models.partition import Piece
from cerebro_trainer.programs.keras_program import KerasProgram
from cerebro_trainer.programs.metrics import pack


class PieceCode:
    """The graphs of a piece: forward in training and beyond it, and back with the step of its
    optimizer.

    What it is given is a list of tensors: all inputs of the network, or what the piece in front
    gives.
    """

    def __init__(self, program: KerasProgram, piece: Piece, signature: Sequence[Any]) -> None:
        """`signature`: the types of the network's targets, and behind them that of weights of
        rows.
        """
        self.piece = piece
        self._program = program
        model = piece.model
        given = [tf.TensorSpec((None, *tensor.shape[1:]), tensor.dtype) for tensor in model.inputs]
        passed = tf.TensorSpec((None, *model.outputs[0].shape[1:]), model.outputs[0].dtype)
        *targets, weights = signature

        def graph(function: Any, *arguments: Any) -> Any:
            # TensorFlow warns of a method that is traced again and again, as each piece is.
            return tf.function(partial(function), autograph=False, input_signature=arguments)

        self.forward = graph(self._forward, given)
        self.infer = graph(self._infer, given)
        self.judge = graph(self._judge, given, targets)
        self.back = graph(self._back, given, passed)
        self._ends = {
            len(each): graph(self._end, given, each) for each in (targets, [*targets, weights])
        }

    def end(self, given: list[Any], targets: list[Any]) -> Any:
        """Of the last piece: its loss, the penalties of its weights, and the gradient of what it is
        given.
        """
        return self._ends[len(targets)](given, targets)

    def _forward(self, given: list[Any]) -> Any:
        return self.piece.model(pack(given), training=True), list(self.piece.model.losses)

    def _infer(self, given: list[Any]) -> Any:
        outputs = self.piece.model(pack(given), training=False)
        return tf.nest.flatten(outputs), list(self.piece.model.losses)

    def _judge(self, given: list[Any], targets: list[Any]) -> Any:
        """Of the last piece: the loss of a batch, which is added to the metrics, and the penalties
        of its weights.
        """
        _, y, _ = self._program.make_arguments([], targets)
        predicted = self.piece.model(pack(given), training=False)
        loss = self._program.model._compile_loss(y, predicted, None)
        self._program.metrics.update(y, predicted)
        return loss, list(self.piece.model.losses)

    def _back(self, given: list[Any], gradient: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(given)
            outputs = self.piece.model(pack(given), training=True)
            penalties = list(self.piece.model.losses)
        ones = [tf.ones_like(penalty) for penalty in penalties]
        return self._stepped(tape, given, [outputs, *penalties], [gradient, *ones])

    def _end(self, given: list[Any], targets: list[Any]) -> Any:
        _, y, weights = self._program.make_arguments([], targets)
        with tf.GradientTape() as tape:
            tape.watch(given)
            loss = self._program.model._compile_loss(
                y, self.piece.model(pack(given), training=True), weights
            )
            penalties = list(self.piece.model.losses)
        return loss, penalties, self._stepped(tape, given, [loss, *penalties], None)

    def _stepped(
        self, tape: Any, given: list[Any], sums: list[Any], weights: list[Any] | None
    ) -> Any:
        """Change the weights by their gradients; the gradient of what the piece is given."""
        trained = self.piece.trained
        gradients = tape.gradient(sums, [*given, *trained], output_gradients=weights)
        passed, own = gradients[: len(given)], gradients[len(given) :]
        if any(gradient is not None for gradient in own):
            with self._program.cache_learning_rate():
                self._program.optimizer.apply_gradients(zip(own, trained, strict=True))
        return tf.zeros_like(given[0]) if passed[0] is None else passed[0]


class Step:
    """One step of training on one batch; `common` are the variables of the optimizer that belong to
    no weight.
    """

    def __init__(
        self, codes: Sequence[PieceCode], common: Sequence[Any], batch: tuple[list[Any], list[Any]]
    ) -> None:
        self._codes = codes
        self._common = common
        self._targets = batch[1]
        self._passed: list[list[Any]] = [[tf.constant(array) for array in batch[0]]]
        self._penalties: list[Any] = []
        self._gradient: Any = None
        self._before: list[Any] | None = None

    def forward(self, shard: range, first_trained: int) -> float:
        """Compute what the pieces of a shard give; they come again on the way back, but those
        without gradients.
        """
        for number in shard:
            code = self._codes[number]
            again = code.piece.model.non_trainable_variables if number >= first_trained else []
            before = [_value(variable) for variable in again]
            output, penalties = code.forward(self._passed[-1])
            for variable, value in zip(again, before, strict=True):
                set_value(variable, value)
            self._passed.append([output])
            self._penalties += penalties
        return 0.0

    def turn(self, shard: range, first_trained: int) -> float:
        """From forward to back, in the last shard: the loss of the batch times its rows."""
        self.forward(shard[:-1], first_trained)
        self._begin_update()
        loss, penalties, self._gradient = self._codes[-1].end(self._passed.pop(), self._targets)
        self._penalties += penalties
        self.back(shard[:-1], first_trained)
        total = keras.ops.sum([loss, *self._penalties]) if self._penalties else loss
        return float(total) * len(self._targets[0])

    def back(self, shard: range, first_trained: int) -> float:
        """Change the weights of a shard."""
        for number in reversed(shard):
            given = self._passed.pop()
            if number >= first_trained:
                self._begin_update()
                self._gradient = self._codes[number].back(given, self._gradient)
        return 0.0

    def _begin_update(self) -> None:
        """All pieces take the same step of the optimizer: what belongs to no weight is as it was
        before.
        """
        if self._before is None:
            self._before = [_value(variable) for variable in self._common]
        for variable, value in zip(self._common, self._before, strict=True):
            set_value(variable, value)


def _value(variable: Any) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=variable.value.handle, dtype=variable.value.dtype)


def set_value(variable: Any, value: Any) -> None:
    """Give a variable a value, perhaps of another shape."""
    tf.raw_ops.AssignVariableOp(resource=variable.value.handle, value=value)
