"""Programs on PyTorch; no other modules than those that begin by `torch_` import it.

Training has two forms. In `eager` Keras and autograd go through every batch anew. In `graph` a step
over a full batch is traced once, forward, backward and optimizer, and its operations are called one
after another; it is for what does the same for every batch. On a GPU there is a third, `captured`:
these operations are handed to the device all at once. The last, smaller batch of a buffer is always
left to `eager`. Several states are trained as one by the forms `fused`, whose step a GPU is handed
at once, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import torch

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.attributions import Gradient
from cerebro_trainer.programs.fusion import LANES, Fusion, Member
from cerebro_trainer.programs.keras_program import KerasProgram
from cerebro_trainer.programs.metrics import pack
from cerebro_trainer.programs.program import FALLBACK, Array, Framework, PendingLoss, Sums
from cerebro_trainer.programs.torch import keras_patches
from cerebro_trainer.programs.torch.foreach_update import flat
from cerebro_trainer.programs.torch.fusion import TorchFusion, side_by_side
from cerebro_trainer.programs.torch.graph import Step, Tensors, captured, graph_of, traced
from cerebro_trainer.programs.torch.tensors import fill, out_of_memory, tensor
from cerebro_trainer.programs.torch.vmap_lanes import Fused, captured_lanes, fused

KEPT_GRAPHS = 4
"""Of a program: sizes of batches, each with weights of rows and without."""


def start(threads: int, cache: Path | None) -> Framework:
    """Set PyTorch up for this process: this many threads, and the same bits for the same work. It
    keeps no code.
    """
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = (
        ":4096:8"  # without it, deterministic algorithms are refused on GPUs
    )
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    keras_patches.install()
    gpus = tuple(f"GPU:{number}" for number in range(torch.cuda.device_count()))
    return Framework(
        name="torch",
        version=torch.__version__,
        keras_version=keras.__version__,
        devices=("CPU:0", *gpus),
        threads=threads,
        make_program=lambda spec, room: TorchProgram(spec),
        errors=(),
        memory_errors=(MemoryError, torch.OutOfMemoryError),
        fatal_errors=(torch.AcceleratorError,) if hasattr(torch, "AcceleratorError") else (),
        describe_gpus=_gpus,
    )


def _gpus() -> tuple[str, ...]:
    found = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return tuple(
        f"device: {number}, name: {each.name}, compute capability: {each.major}.{each.minor}"
        for number, each in enumerate(found)
    )


class TorchProgram(KerasProgram):
    """A program whose variables are changed where they lie."""

    compilation_factor = 1.0

    def __init__(self, spec: ProgramSpec) -> None:
        super().__init__(spec, "torch")
        self._flat = flat(self.optimizer, self.trained_variables)
        once = ("captured", "graph") if torch.cuda.is_available() else ("graph",)
        self.modes = ("eager",) if self._flat is None else (*once, "eager")
        # A step is traced with weights in one piece.
        self.lanes: Mapping[str, int] = {} if self._flat is None else LANES
        self._graphs: dict[tuple[str, int, int], Any] = {}
        self._kept_lanes: dict[str, Tensors] = {}

    def read_variable(self, variable: Any) -> Array:
        # A copy, since the variable is changed in place.
        return np.array(variable._value.detach().cpu().numpy())

    def assign(self, position: int, value: Array) -> None:
        fill(self.variables[position]._value, value)

    def dispatch(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> PendingLoss:
        if form in self.lanes:
            return partial(float, self.train_in_lanes(buffer, order, batch_size, form))
        inputs, targets = self.io_spec.convert(buffer)
        with out_of_memory():
            if form == FALLBACK:
                return partial(float, self.fit_with_keras(inputs, targets, order, batch_size))
            columns = [tensor(array) for array in (*inputs, *targets)]
            full: Step = self._eager
            if form != "eager" and len(order) >= batch_size:
                full = self._graph(form, [column[:batch_size] for column in columns])
            return self._run(full, columns, tensor(order), batch_size)

    def _run(self, full: Step, columns: Tensors, order: Any, batch_size: int) -> PendingLoss:
        """One pass, whose batches of full size a function trains on."""
        batches, losses = order.split(batch_size), []
        with torch.no_grad():
            for chosen in batches:
                step = full if len(chosen) == batch_size else self._eager
                losses.append(step([column.index_select(0, chosen) for column in columns]))
            means = torch.stack(losses).double()

        def total() -> float:
            with out_of_memory():
                found: list[float] = means.tolist()
            return sum(mean * len(chosen) for mean, chosen in zip(found, batches, strict=True))

        return total

    def fuse(self, members: Sequence[Member], form: str) -> Fusion:
        return TorchFusion(self, members, form, self.lanes[form])

    def fused(self, form: str, columns: Tensors) -> Fused:
        """The traced step over batches like these, one of each state."""
        one = [column[0] for column in columns]

        def made() -> Fused:
            step = graph_of(lambda held, batch: self._eager(batch), self.tensors(), one)
            several = fused(step, side_by_side(self.tensors(), self.lanes[form]), columns)
            kept = self._kept_lanes.get(form)
            return several if kept is None else captured_lanes(several, kept, columns)

        found: Fused = self._once(form, one, made)
        return found

    def lanes_of(self, form: str) -> Tensors:
        """Tensors for the states of a form; on a GPU the same ones each time, since a captured step
        is of these.
        """
        if not torch.cuda.is_available():
            return side_by_side(self.tensors(), self.lanes[form])
        if form not in self._kept_lanes:
            self._kept_lanes[form] = side_by_side(self.tensors(), self.lanes[form])
        return self._kept_lanes[form]

    def alone(
        self, batches: Sequence[tuple[Member, Tensors]]
    ) -> list[tuple[Sequence[Array], float]]:
        """A step of each of these states on its batch: the values after it, and the loss before."""
        held = self.read_member()
        try:
            return [self._alone(member, columns) for member, columns in batches]
        finally:
            self._hold(held)

    def _alone(self, member: Member, columns: Tensors) -> tuple[Sequence[Array], float]:
        self._hold(member)
        loss = float(self._eager(columns))
        return self.read(), loss

    def _hold(self, member: Member) -> None:
        self.write(member.values)
        for variable, number in zip(
            self.hyperparameters.variables, member.hyperparameters, strict=True
        ):
            fill(variable._value, number)

    def _graph(self, form: str, columns: Tensors) -> Step:
        """The traced step over batches like this one, captured if that is the form."""

        def made() -> Step:
            step = traced(self._eager, self.tensors(), columns)
            return captured(step, columns) if form == "captured" else step

        found: Step = self._once(form, columns, made)
        return found

    def _once(self, form: str, columns: Tensors, made: Callable[[], Any]) -> Any:
        """What is made for a form and batches like this one."""
        key = form, len(columns[0]), len(columns)
        if key not in self._graphs:
            while len(self._graphs) >= KEPT_GRAPHS:
                del self._graphs[next(iter(self._graphs))]
            saved = self.read()
            try:
                # What Keras makes when it first meets a batch must not become a part of the step.
                self._eager(columns)
                self._graphs[key] = made()
            finally:
                self.write(saved)
        return self._graphs[key]

    def tensors(self) -> Tensors:
        """All that a step may read or change; what makes up a state first, then its numbers."""
        long = [] if self._flat is None else self._flat.variables
        known = [
            *self.variables,
            *self.hyperparameters.variables,
            *self.model.metrics_variables,
            *long,
        ]
        return [variable._value for variable in known]

    def _eager(self, columns: Tensors) -> Any:
        """One optimizer step on one batch: the loss before it."""
        count = len(self.io_spec.inputs)
        x, y, weights = self.make_arguments(columns[:count], columns[count:])
        with torch.enable_grad():
            loss = self.model.compute_loss(
                x, y, self.model(x, training=True), weights, training=True
            )
            scaled = self.optimizer.scale_loss(loss)
            trained = [variable._value for variable in self.trained_variables]
            gradients = torch.autograd.grad(scaled, trained, allow_unused=True)
        with (
            torch.no_grad(),
            self.cache_learning_rate(
                self._inner_optimizer if self._flat is None else self._flat.optimizer
            ),
        ):
            if self._flat is not None and all(gradient is not None for gradient in gradients):
                self._flat.apply(gradients)
            else:
                self.optimizer.apply(gradients, self.trained_variables)
        return loss.detach()

    def evaluate(self, buffer: Buffer) -> Sums:
        inputs, targets = self.io_spec.convert(buffer)
        self.metrics.reset()
        size, total = self.choose_evaluation_batch(inputs), 0.0
        with out_of_memory(), torch.no_grad():
            for columns in _batches((*inputs, *targets[: len(self.io_spec.outputs)]), size):
                x, y, _ = self.make_arguments(columns[: len(inputs)], columns[len(inputs) :])
                predicted = self.model(x, training=False)
                loss = self.model.compute_loss(x, y, predicted, training=False)
                self.metrics.update(y, predicted)
                total += float(loss) * len(columns[0])
        return [[total, float(buffer.rows)], *self.metrics.read_sums()]

    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        fitted = self.io_spec.convert_inputs(inputs)
        parts = [
            self._outputs(self.model, columns)
            for columns in _batches(fitted, self.choose_prediction_batch(fitted))
        ]
        return [
            np.concatenate([part[position] for part in parts])
            for position in range(len(self.io_spec.outputs))
        ]

    def compile_forward(self, model: keras.Model) -> Callable[[list[Array]], Array]:
        def computed(arrays: list[Array]) -> Array:
            parts = [
                self._outputs(model, columns)
                for columns in _batches(arrays, self.choose_evaluation_batch(arrays))
            ]
            return np.concatenate([part[0].astype(np.float32, copy=False) for part in parts])

        return computed

    def compile_gradient(self, model: keras.Model) -> Gradient:
        known: dict[tuple[Any, ...], Callable[[Tensors], Any]] = {}

        def computed(points: list[Array], beside: list[Array], select: Array) -> list[Array]:
            def step(columns: Tensors) -> Tensors:
                with torch.enable_grad():
                    at = [column.detach().requires_grad_() for column in columns[: len(points)]]
                    output = model(pack([*at, *columns[len(points) : -1]]), training=False)
                    chosen = (output.float().reshape(select.shape) * columns[-1]).sum()
                    return list(
                        torch.autograd.grad(chosen, at, allow_unused=True, materialize_grads=True)
                    )

            columns = [tensor(array) for array in (*points, *beside, select)]
            shapes = tuple(column.shape for column in columns)
            with out_of_memory(), torch.no_grad():
                if shapes not in known:
                    known[shapes] = traced(
                        step, [variable._value for variable in model.variables], columns
                    )
                return [array.cpu().numpy() for array in known[shapes](columns)]

        return computed

    def _outputs(self, model: keras.Model, columns: Tensors) -> list[Array]:
        with out_of_memory(), torch.no_grad():
            found = keras.tree.flatten(model(pack(columns), training=False))
            return [keras.ops.convert_to_numpy(output) for output in found]


def _batches(arrays: Sequence[Array], size: int) -> Iterator[Tensors]:
    """So many rows at a time of each array."""
    for begin in range(0, len(arrays[0]), size):
        yield [tensor(array[begin : begin + size]) for array in arrays]
