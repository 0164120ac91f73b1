"""Programs on PyTorch; the only module that imports it, but for `torch_flat`, `torch_graph` and `torch_keras`.

Training has two forms. In `eager` Keras and autograd go through every batch anew. In `graph` a step over a full batch
is traced once, forward, backward and optimizer, and its operations are called one after another; it is for what does
the same for every batch. On a GPU there is a third, `captured`: these operations are handed to the device all at once.
The last, smaller batch of a buffer is always left to `eager`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import torch

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs import torch_keras
from cerebro_trainer.programs.keras_program import KerasProgram
from cerebro_trainer.programs.metrics import packed
from cerebro_trainer.programs.protocol import FALLBACK, Array, Framework, Loss, Sums
from cerebro_trainer.programs.torch_flat import flat
from cerebro_trainer.programs.torch_graph import Step, Tensors, captured, traced

KEPT_GRAPHS = 4
"""Of a program: sizes of batches, each with weights of rows and without."""


def start(threads: int, cache: Path | None) -> Framework:
    """Set PyTorch up for this process: this many threads, and the same bits for the same work. It keeps no code."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # without it, deterministic algorithms are refused on GPUs
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch_keras.install()
    gpus = tuple(f"GPU:{number}" for number in range(torch.cuda.device_count()))
    return Framework(
        name="torch",
        version=torch.__version__,
        keras_version=keras.__version__,
        devices=("CPU:0", *gpus),
        threads=threads,
        make=lambda spec, room: TorchProgram(spec),
        errors=(),
        memory_errors=(MemoryError, torch.OutOfMemoryError),
        gpus=_gpus,
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
        self._flat = flat(self.optimizer, self.trained)
        once = ("captured", "graph") if torch.cuda.is_available() else ("graph",)
        self.forms = ("eager",) if self._flat is None else (*once, "eager")
        self._graphs: dict[tuple[str, int, int], Step] = {}

    def value(self, variable: Any) -> Array:
        # A copy, since the variable is changed in place.
        return np.array(variable._value.detach().cpu().numpy())

    def assign(self, position: int, value: Array) -> None:
        _fill(self.variables[position]._value, value)

    def dispatch(self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str) -> Loss:
        inputs, targets = self.interface.fit(buffer)
        with _out_of_memory():
            if form == FALLBACK:
                return partial(float, self.fit(inputs, targets, order, batch_size))
            columns = [_tensor(array) for array in (*inputs, *targets)]
            full: Step = self._eager
            if form != "eager" and len(order) >= batch_size:
                full = self._graph(form, [column[:batch_size] for column in columns])
            return self._run(full, columns, _tensor(order), batch_size)

    def _run(self, full: Step, columns: Tensors, order: Any, batch_size: int) -> Loss:
        """One pass, whose batches of full size a function trains on."""
        batches, losses = order.split(batch_size), []
        with torch.no_grad():
            for chosen in batches:
                step = full if len(chosen) == batch_size else self._eager
                losses.append(step([column.index_select(0, chosen) for column in columns]))
            means = torch.stack(losses).double()

        def total() -> float:
            with _out_of_memory():
                found: list[float] = means.tolist()
            return sum(mean * len(chosen) for mean, chosen in zip(found, batches, strict=True))

        return total

    def _graph(self, form: str, columns: Tensors) -> Step:
        """The traced step over batches like this one, captured if that is the form."""
        key = form, len(columns[0]), len(columns)
        if key not in self._graphs:
            while len(self._graphs) >= KEPT_GRAPHS:
                del self._graphs[next(iter(self._graphs))]
            saved = self.read()
            try:
                # What Keras makes when it first meets a batch must not become a part of the step.
                self._eager(columns)
                step = traced(self._eager, self._tensors(), columns)
                self._graphs[key] = captured(step, columns) if form == "captured" else step
            finally:
                self.write(saved)
        return self._graphs[key]

    def _tensors(self) -> Tensors:
        """All that a step may read or change."""
        long = [] if self._flat is None else self._flat.variables
        known = [*self.variables, *self.numbers, *self.model.metrics_variables, *long]
        return [variable._value for variable in known]

    def _eager(self, columns: Tensors) -> Any:
        """One optimizer step on one batch: the loss before it."""
        count = len(self.interface.inputs)
        x, y, weights = self.arguments(columns[:count], columns[count:])
        with torch.enable_grad():
            loss = self.model.compute_loss(x, y, self.model(x, training=True), weights, training=True)
            scaled = self.optimizer.scale_loss(loss)
            trained = [variable._value for variable in self.trained]
            gradients = torch.autograd.grad(scaled, trained, allow_unused=True)
        with torch.no_grad(), self.one_rate(self._inner_optimizer if self._flat is None else self._flat.optimizer):
            if self._flat is not None and all(gradient is not None for gradient in gradients):
                self._flat.apply(gradients)
            else:
                self.optimizer.apply(gradients, self.trained)
        return loss.detach()

    def evaluate(self, buffer: Buffer) -> Sums:
        inputs, targets = self.interface.fit(buffer)
        self.metrics.reset()
        size, total = self.evaluation_batch(inputs), 0.0
        with _out_of_memory(), torch.no_grad():
            for columns in _batches((*inputs, *targets[: len(self.interface.outputs)]), size):
                x, y, _ = self.arguments(columns[: len(inputs)], columns[len(inputs) :])
                predicted = self.model(x, training=False)
                loss = self.model.compute_loss(x, y, predicted, training=False)
                self.metrics.update(y, predicted)
                total += float(loss) * len(columns[0])
        return [[total, float(buffer.rows)], *self.metrics.sums()]

    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        fitted = self.interface.fit_inputs(inputs)
        parts = [self._outputs(self.model, columns) for columns in _batches(fitted, self.prediction_batch(fitted))]
        return [np.concatenate([part[position] for part in parts]) for position in range(len(self.interface.outputs))]

    def forward(self, model: keras.Model) -> Callable[[list[Array]], Array]:
        def computed(arrays: list[Array]) -> Array:
            parts = [self._outputs(model, columns) for columns in _batches(arrays, self.evaluation_batch(arrays))]
            return np.concatenate([part[0].astype(np.float32, copy=False) for part in parts])

        return computed

    def gradient(self, model: keras.Model) -> Callable[[list[Array], list[Array], Array], list[Array]]:
        known: dict[tuple[Any, ...], Callable[[Tensors], Any]] = {}

        def computed(points: list[Array], beside: list[Array], select: Array) -> list[Array]:
            def step(columns: Tensors) -> Tensors:
                with torch.enable_grad():
                    at = [column.detach().requires_grad_() for column in columns[: len(points)]]
                    output = model(packed([*at, *columns[len(points) : -1]]), training=False)
                    chosen = (output.float().reshape(select.shape) * columns[-1]).sum()
                    return list(torch.autograd.grad(chosen, at, allow_unused=True, materialize_grads=True))

            columns = [_tensor(array) for array in (*points, *beside, select)]
            shapes = tuple(column.shape for column in columns)
            with _out_of_memory(), torch.no_grad():
                if shapes not in known:
                    known[shapes] = traced(step, [variable._value for variable in model.variables], columns)
                return [array.cpu().numpy() for array in known[shapes](columns)]

        return computed

    def _outputs(self, model: keras.Model, columns: Tensors) -> list[Array]:
        with _out_of_memory(), torch.no_grad():
            found = keras.tree.flatten(model(packed(columns), training=False))
            return [keras.ops.convert_to_numpy(output) for output in found]


@contextmanager
def _out_of_memory() -> Iterator[None]:
    """PyTorch says it by an error of any kind on the host."""
    try:
        yield
    except RuntimeError as error:
        _, refused, asked = str(error).partition("can't allocate memory: ")
        if refused:
            raise MemoryError(asked.partition(". ")[0]) from error
        raise


def _batches(arrays: Sequence[Array], size: int) -> Iterator[Tensors]:
    """So many rows at a time of each array."""
    for begin in range(0, len(arrays[0]), size):
        yield [_tensor(array[begin : begin + size]) for array in arrays]


def _tensor(array: Array) -> Any:
    """A copy, which lies as PyTorch's own tensors do: on that depend the last bits of sums."""
    return torch.tensor(array, device=keras.src.backend.torch.core.get_device())


def _fill(tensor: Any, value: Array) -> None:
    """Set a tensor to values, which may be read-only."""
    with torch.no_grad():
        if tensor.device.type == "cpu":
            np.copyto(tensor.detach().numpy(), value)
        else:
            tensor.copy_(torch.tensor(value))
