"""Programs on PyTorch.

Training has these modes:

* `eager`: Keras and autograd process every batch anew.
* `graph`: a step over a full batch is traced once, forward, backward and optimizer, and its
  operations are called one after another. It needs the same operations for every batch.
* `captured`, on a GPU only: these operations are submitted to the device all at once.
* `fused_…`: several states are trained at once; on a GPU their step is captured, too.

The last, smaller batch of a buffer is always trained as in `eager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import keras
import numpy as np
import torch

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import iterate_batches, join_batches
from cerebro_trainer.models.keras_model import unwrap_single
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.attributions import Gradient
from cerebro_trainer.programs.fusion import LANES, Fusion, Member, Order
from cerebro_trainer.programs.keras_program import Forward, KerasProgram
from cerebro_trainer.programs.learner import Sums
from cerebro_trainer.programs.program import FALLBACK, PendingLoss
from cerebro_trainer.programs.torch.foreach_update import make_flat_optimizer
from cerebro_trainer.programs.torch.fusion import TorchFusion, make_lanes_like
from cerebro_trainer.programs.torch.graph import Step, capture_step, trace_graph, trace_step
from cerebro_trainer.programs.torch.tensors import (
    Tensors,
    convert_memory_errors,
    fill_tensor,
    to_tensor,
)
from cerebro_trainer.programs.torch.vmap_lanes import FusedStep, capture_fused_step, fuse_step
from cerebro_trainer.wire.frames import Array, Arrays

T = TypeVar("T")
MAX_CACHED_STEPS = 4
"""Traced steps of a program, by size of batches, with weights of rows and without."""


class TorchProgram(KerasProgram):
    """A program whose variables are changed in place."""

    compilation_factor = 1.0

    def __init__(self, spec: ProgramSpec) -> None:
        super().__init__(spec, "torch")
        self._flat_optimizer = make_flat_optimizer(self.optimizer, self.trained_variables)
        if self._flat_optimizer is None:  # a traced step needs flat weights
            self.modes = ("eager",)
            self.lanes = {}
        else:
            self.modes = ("graph", "eager")
            self.lanes = LANES
            if torch.cuda.is_available():
                self.modes = ("captured", "graph", "eager")
        self._traced_steps: dict[tuple[str, int, int], Any] = {}
        self._lane_tensors: dict[str, Tensors] = {}

    def read_variable(self, variable: Any) -> Array:
        # A copy, since the variable is changed in place.
        return np.array(variable._value.detach().cpu().numpy())

    def assign(self, position: int, value: Array) -> None:
        fill_tensor(self.variables[position]._value, value)

    def dispatch(self, buffer: Buffer, order: Order, batch_size: int, mode: str) -> PendingLoss:
        if mode in self.lanes:
            return self.train_in_lanes(buffer, order, batch_size, mode)
        inputs, targets = self.io_spec.convert(buffer)
        with convert_memory_errors():
            if mode == FALLBACK:
                return partial(float, self.fit_with_keras(inputs, targets, order, batch_size))
            columns = [to_tensor(array) for array in (*inputs, *targets)]
            step: Step = self._take_step
            if mode != "eager" and len(order) >= batch_size:
                step = self._trace_step(mode, [column[:batch_size] for column in columns])
            return self._run(step, columns, to_tensor(order), batch_size)

    def _run(self, full_step: Step, columns: Tensors, order: Any, batch_size: int) -> PendingLoss:
        """Train one pass, with `full_step` on its full batches."""
        batches = order.split(batch_size)
        losses = []
        with torch.no_grad():
            for positions in batches:
                step = full_step if len(positions) == batch_size else self._take_step
                losses.append(step([column.index_select(0, positions) for column in columns]))
            loss_tensor = torch.stack(losses).double()

        def sum_losses() -> float:
            with convert_memory_errors():
                means: list[float] = loss_tensor.tolist()
            return sum(
                mean * len(positions) for mean, positions in zip(means, batches, strict=True)
            )

        return sum_losses

    def fuse(self, members: Sequence[Member], mode: str) -> Fusion:
        return TorchFusion(self, members, mode, self.lanes[mode])

    def make_fused_step(self, mode: str, columns: Tensors) -> FusedStep:
        """Return the traced step on batches like these, one per lane."""
        batch = [column[0] for column in columns]

        def make() -> FusedStep:
            step = trace_graph(
                lambda tensors, batch: self._take_step(batch), self._list_tensors(), batch
            )
            tensors = make_lanes_like(self._list_tensors(), self.lanes[mode])
            fused = fuse_step(step, tensors, columns)
            lane_tensors = self._lane_tensors.get(mode)
            if lane_tensors is None:
                return fused
            return capture_fused_step(fused, lane_tensors, columns)

        return self._get_step(mode, batch, make)

    def make_lane_tensors(self, mode: str) -> Tensors:
        """Return tensors for the states of a mode.

        On a GPU they are the same ones each time, since a captured step is bound to its tensors.
        """
        if mode in self._lane_tensors:
            return self._lane_tensors[mode]
        tensors = make_lanes_like(self._list_tensors(), self.lanes[mode])
        if torch.cuda.is_available():
            self._lane_tensors[mode] = tensors
        return tensors

    def take_single_steps(
        self, batches: Sequence[tuple[Member, Tensors]]
    ) -> list[tuple[Arrays, float]]:
        """Take a step of each state on its batch; return new values and losses before the step."""
        original = self.read_member()
        try:
            return [self._take_single_step(member, columns) for member, columns in batches]
        finally:
            self._write_member(original)

    def _take_single_step(self, member: Member, columns: Tensors) -> tuple[Arrays, float]:
        self._write_member(member)
        loss = float(self._take_step(columns))
        return self.read(), loss

    def _write_member(self, member: Member) -> None:
        self.write(member.values)
        for variable, value in zip(
            self.hyperparameters.variables, member.hyperparameters, strict=True
        ):
            fill_tensor(variable._value, value)

    def _trace_step(self, mode: str, columns: Tensors) -> Step:
        """Return the traced step on batches like this one, captured if the mode is so."""

        def make() -> Step:
            step = trace_step(self._take_step, self._list_tensors(), columns)
            return capture_step(step, columns) if mode == "captured" else step

        return self._get_step(mode, columns, make)

    def _get_step(self, mode: str, columns: Tensors, make: Callable[[], T]) -> T:
        """Return the cached step of a mode on batches like this one; make it if it is missing."""
        key = (mode, len(columns[0]), len(columns))
        if key not in self._traced_steps:
            while len(self._traced_steps) >= MAX_CACHED_STEPS:
                del self._traced_steps[next(iter(self._traced_steps))]
            original_values = self.read()
            try:
                # Objects that Keras creates on its first batch must not become part of the step.
                self._take_step(columns)
                self._traced_steps[key] = make()
            finally:
                self.write(original_values)
        step: T = self._traced_steps[key]
        return step

    def _list_tensors(self) -> Tensors:
        """Return all tensors that a step may read or change.

        The variables of the state come first, then the hyperparameters.
        """
        variables = [
            *self.variables,
            *self.hyperparameters.variables,
            *self.model.metrics_variables,
        ]
        if self._flat_optimizer is not None:
            variables += self._flat_optimizer.variables
        return [variable._value for variable in variables]

    def _take_step(self, columns: Tensors) -> Any:
        """Take one optimizer step on one batch; return the loss before it."""
        count = len(self.io_spec.inputs)
        x, y, weights = self.make_arguments(columns[:count], columns[count:])
        with torch.enable_grad():
            loss = self.model.compute_loss(
                x, y, self.model(x, training=True), weights, training=True
            )
            scaled_loss = self.optimizer.scale_loss(loss)
            trained = [variable._value for variable in self.trained_variables]
            gradients = torch.autograd.grad(scaled_loss, trained, allow_unused=True)
        flat_optimizer = self._flat_optimizer
        rate_owner = self._inner_optimizer if flat_optimizer is None else flat_optimizer.optimizer
        with torch.no_grad(), self.cache_learning_rate(rate_owner):
            if flat_optimizer is None or any(gradient is None for gradient in gradients):
                self.optimizer.apply(gradients, self.trained_variables)
            else:
                flat_optimizer.apply(gradients)
        return loss.detach()

    def evaluate(self, buffer: Buffer) -> Sums:
        inputs, targets = self.io_spec.convert(buffer)
        columns_without_weights = (*inputs, *targets[: len(self.io_spec.outputs)])
        batch_size = self.choose_evaluation_batch(inputs)
        self.metrics.reset()
        total = 0.0
        with convert_memory_errors(), torch.no_grad():
            for columns in _iterate_tensors(columns_without_weights, batch_size):
                x, y, _ = self.make_arguments(columns[: len(inputs)], columns[len(inputs) :])
                predicted = self.model(x, training=False)
                loss = self.model.compute_loss(x, y, predicted, training=False)
                self.metrics.update(y, predicted)
                total += float(loss) * len(columns[0])
        return [[total, float(buffer.rows)], *self.metrics.read_sums()]

    def predict(self, inputs: Arrays) -> list[Array]:
        arrays = self.io_spec.convert_inputs(inputs)
        batch_size = self.choose_prediction_batch(arrays)
        return join_batches(
            _compute_outputs(self.model, columns)
            for columns in _iterate_tensors(arrays, batch_size)
        )

    def compile_forward(self, model: keras.Model) -> Forward:
        def forward(arrays: Arrays) -> Array:
            batch_size = self.choose_evaluation_batch(arrays)
            parts = []
            for columns in _iterate_tensors(arrays, batch_size):
                (output,) = _compute_outputs(model, columns)
                parts.append(output.astype(np.float32, copy=False))
            return np.concatenate(parts)

        return forward

    def compile_gradient(self, model: keras.Model) -> Gradient:
        traced_steps: dict[tuple[Any, ...], Step] = {}

        def compute_gradient(
            points: Arrays, other_inputs: Arrays, unit_weights: Array
        ) -> list[Array]:
            def take_step(columns: Tensors) -> Tensors:
                *inputs, weights = columns
                with torch.enable_grad():
                    leaves = [column.detach().requires_grad_() for column in inputs[: len(points)]]
                    output = model(unwrap_single([*leaves, *inputs[len(points) :]]), training=False)
                    total = (output.float().reshape(unit_weights.shape) * weights).sum()
                    return list(
                        torch.autograd.grad(
                            total, leaves, allow_unused=True, materialize_grads=True
                        )
                    )

            columns = [to_tensor(array) for array in (*points, *other_inputs, unit_weights)]
            shapes = tuple(column.shape for column in columns)
            with convert_memory_errors(), torch.no_grad():
                if shapes not in traced_steps:
                    variables = [variable._value for variable in model.variables]
                    traced_steps[shapes] = trace_step(take_step, variables, columns)
                return [gradient.cpu().numpy() for gradient in traced_steps[shapes](columns)]

        return compute_gradient


def _compute_outputs(model: keras.Model, columns: Tensors) -> list[Array]:
    with convert_memory_errors(), torch.no_grad():
        outputs = keras.tree.flatten(model(unwrap_single(columns), training=False))
        return [keras.ops.convert_to_numpy(output) for output in outputs]


def _iterate_tensors(arrays: Arrays, batch_size: int) -> Iterator[Tensors]:
    for batch in iterate_batches(arrays, batch_size):
        yield list(map(to_tensor, batch))
