"""Programs on JAX; the only module that imports it, but for `jax_code`.

XLA compiles for fixed shapes, so what differs in length between buffers is kept out of the shapes:
batches are gathered before they are passed (`jit_step`, `scan_block`), or a buffer is lengthened to
one of a few capacities and a loop runs over as many batches as there are (`scan`). So a batch size
compiles once, and each size of a last batch once more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import keras
import numpy as np
import numpy.typing as npt
from jax._src import compilation_cache

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import (
    Columns,
    map_arrays,
    pad_to_capacity,
    slice_rows,
    split_batches,
    take_rows,
)
from cerebro_trainer.models import keras_model
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs import code_cache
from cerebro_trainer.programs.fusion import LANES, Fusion, Member
from cerebro_trainer.programs.jax.compiled_code import Code, Entries, KeptFunction
from cerebro_trainer.programs.jax.fusion import FusedLoop, JaxFusion
from cerebro_trainer.programs.keras_program import KerasProgram
from cerebro_trainer.programs.metrics import packed
from cerebro_trainer.programs.program import FALLBACK, Array, Framework, PendingLoss, Sums

BLOCK_STEPS = 16
"""Batches in one call of the form scan_block."""
PART_ROWS = 16
"""Evaluation cuts a last batch into parts of so many rows, and what then is left into single rows:
three compiled shapes serve buffers of any length, and sums do not depend on where they are cut."""

Values: TypeAlias = list[Any]
"""Arrays on the device, one per variable."""


def start(threads: int, cache: Path | None) -> Framework:
    """Set JAX up for this process: this many threads, the same bits for the same work, and where
    code is kept.
    """
    # Read when the first device is asked for. XLA_FLAGS of earlier releases no longer limit the
    # CPU's threads.
    os.environ["PJRT_NPROC"] = str(threads)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true"
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "-1":
        _configure(jax_platforms="cpu")
    folder = None if cache is None else code_cache.folder(cache, "jax", jax.__version__, threads)
    entries = None if folder is None else _entries(folder)
    # What is compiled for a GPU is kept by JAX alone: to keep it whole was not tried.
    code = Code(entries if jax.default_backend() == "cpu" else None)
    return Framework(
        name="jax",
        version=jax.__version__,
        keras_version=keras.__version__,
        devices=tuple(f"{device.platform.upper()}:{device.id}" for device in jax.devices()),
        threads=threads,
        make_program=lambda spec, room: JaxProgram(spec, code),
        errors=(jax.errors.JaxRuntimeError,),
        memory_errors=(MemoryError,),
        describe_gpus=lambda: tuple(
            f"device: {d.id}, name: {d.device_kind}" for d in jax.devices() if d.platform == "gpu"
        ),
    )


def _entries(folder: Path) -> Entries:
    """What is kept in a folder, where JAX keeps what it compiles by itself, too."""
    entries = Entries(folder)
    # JAX's own way leaves half a file where it is interrupted, and warns users of it ever after.
    compilation_cache.get_file_cache = lambda path: (entries, path)
    _configure(
        jax_compilation_cache_dir=str(folder),
        # building a model compiles many small functions
        jax_persistent_cache_min_compile_time_secs=0.0,
        jax_persistent_cache_enable_xla_caches="none",  # of GPUs, in files that nobody bounds
    )
    return entries


def _configure(**options: object) -> None:
    for name, value in options.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]


class JaxProgram(KerasProgram):
    """A program compiled by XLA.

    Its functions are pure, so Keras' variables hold the state between calls only; a call that
    trains takes over (donates) the memory of the values that it replaces.
    """

    batches_at_once: Mapping[str, int] = {"scan_block": BLOCK_STEPS}
    lanes = LANES
    compilation_factor = 1.5

    def __init__(self, spec: ProgramSpec, code: Code | None = None) -> None:
        # What a custom function does need not follow from its source alone.
        self._code = Code(None) if code is None or spec.sources else code.of(spec.key)
        super().__init__(spec, "jax")
        # On a CPU, a loop in XLA takes small networks to a fourth of the time, and convolutions to
        # twice as long.
        first = ("jit_step", "scan") if keras_model.convolves(self.model) else ("scan", "jit_step")
        self.modes = (*first, "scan_block")
        positions = {id(variable): position for position, variable in enumerate(self.variables)}
        self._trainable = [positions[id(variable)] for variable in self.trained]
        kept = partial(KeptFunction, self._code)
        self._train = {
            "jit_step": kept("step", self._step, 2, donate_argnums=1),
            "scan_block": kept("block", self._block, 2, donate_argnums=1),
            "scan": kept("loop", self._loop, 2, donate_argnums=1, static_argnames="batch"),
        }
        self._fused = {
            form: FusedLoop(kept, lanes, self._loop, self._step)
            for form, lanes in self.lanes.items()
        }
        self._evaluate = kept("evaluate", self._evaluate_batch, 3)
        self._forward = kept("forward", self._outputs, 1)

    def take_saved_compile_seconds(self) -> float:
        return self._code.take_saved_compile_seconds()

    def value(self, variable: Any) -> Array:
        # Keras asks an array of NumPy, which `assign` leaves, for its type by None: to NumPy 1 that
        # means float64.
        return np.asarray(variable.value)

    def assign(self, position: int, value: Array) -> None:
        # Keras' way takes longer than to train a small batch does; what is compiled takes the array
        # as it is.
        self.variables[position]._direct_assign(value)

    def compiled(
        self, function: Callable[..., Any], variables: Sequence[Any]
    ) -> Callable[..., Any]:
        model = self.model.variables

        def pure(weights: Values, values: Values, *arrays: Any) -> tuple[Any, Values]:
            lent = [*zip(model, weights, strict=True), *zip(variables, values, strict=True)]
            with keras.StatelessScope(lent, collect_losses=True) as scope:
                result = function(*arrays)
            return result, [scope.get_current_value(variable) for variable in variables]

        kept = KeptFunction(self._code, function.__name__, pure, 2)

        def called(*arrays: Any) -> Any:
            result, values = kept(_held(model), _held(variables), *arrays)
            _assign(variables, values)
            return result

        return called

    def dispatch(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> PendingLoss:
        if form in self.lanes:
            return partial(float, self.train_in_lanes(buffer, order, batch_size, form))
        if form == FALLBACK:
            return partial(float, self.fit(*self.io_spec.fit(buffer), order, batch_size))
        with _out_of_memory():
            values, losses = self._run(
                _held(self.variables), self.io_spec.fit(buffer), order, batch_size, form
            )
        _assign(self.variables, values)
        return partial(_sum, losses, np.minimum(batch_size, np.arange(len(order), 0, -batch_size)))

    def fuse(self, members: Sequence[Member], form: str) -> Fusion:
        return JaxFusion(self._fused[form], self.io_spec, members)

    def evaluate(self, buffer: Buffer) -> Sums:
        columns = self.io_spec.fit(buffer)
        self.metrics.reset()
        evaluate = partial(self._evaluate, _held(self.numbers), _on_device(self.variables))
        states, losses = _held(self.metrics.variables), []
        with _out_of_memory():
            for begin, end in self._parts(columns[0]):
                loss, states = evaluate(states, slice_rows(columns, begin, end))
                losses.append((loss, end - begin))
            total = sum((float(loss) * rows for loss, rows in losses), 0.0)
        _assign(self.metrics.variables, states)
        return [[total, float(buffer.rows)], *self.metrics.sums()]

    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        fitted = self.io_spec.fit_inputs(inputs)
        forward = partial(self._forward, _on_device(self.variables))
        with _out_of_memory():
            parts = [forward(slice_rows((fitted, []), *part)[0]) for part in self._parts(fitted)]
            return [
                np.concatenate([np.asarray(part[position]) for part in parts])
                for position in range(len(self.io_spec.outputs))
            ]

    def gradient(
        self, model: keras.Model
    ) -> Callable[[list[Array], list[Array], Array], list[Array]]:
        def chosen(points: list[Any], beside: list[Any], select: Any, values: Values) -> Any:
            with keras.StatelessScope([*zip(model.variables, values, strict=True)]):
                output = model(packed([*points, *beside]), training=False)
            return jnp.sum(output.astype(jnp.float32).reshape(select.shape) * select)

        compiled = jax.jit(jax.grad(chosen))

        def computed(points: list[Array], beside: list[Array], select: Array) -> list[Array]:
            with _out_of_memory():
                return [
                    np.asarray(array)
                    for array in compiled(points, beside, select, _held(model.variables))
                ]

        return computed

    def forward(self, model: keras.Model) -> Callable[[list[Array]], Array]:
        def outputs(values: Values, inputs: list[Any]) -> Any:
            with self._scope(values):
                return model(packed(inputs), training=False).astype(jnp.float32)

        compiled = jax.jit(outputs)

        def computed(arrays: list[Array]) -> Array:
            values = _on_device(self.variables)
            with _out_of_memory():
                parts = [
                    compiled(values, slice_rows((arrays, []), *part)[0])
                    for part in self._parts(arrays)
                ]
                return np.concatenate([np.asarray(part) for part in parts])

        return computed

    def _run(
        self,
        values: Values,
        columns: Columns,
        order: npt.NDArray[np.int32],
        batch_size: int,
        form: str,
    ) -> tuple[Values, list[tuple[Any, int]]]:
        """The values after one pass, and arrays of which so many first are mean losses of batches,
        in order.
        """
        step, train = (
            partial(self._train[name], _held(self.numbers)) for name in ("jit_step", form)
        )
        losses, done = list[tuple[Any, int]](), 0
        if form == "scan" and len(order) >= batch_size:
            done = len(order) - len(order) % batch_size
            steps = done // batch_size
            values, found = train(
                values, *pad_to_capacity(columns, order), np.int32(steps), batch=batch_size
            )
            losses.append((found, steps))
        while form == "scan_block" and len(order) - done >= BLOCK_STEPS * batch_size:
            chosen = order[done : done + BLOCK_STEPS * batch_size]
            values, found = train(values, split_batches(take_rows(columns, chosen), batch_size))
            losses.append((found, BLOCK_STEPS))
            done += len(chosen)
        for begin in range(done, len(order), batch_size):
            values, loss = step(values, take_rows(columns, order[begin : begin + batch_size]))
            losses.append((loss, 1))
        return values, losses

    def _parts(self, inputs: Sequence[Array]) -> Iterator[tuple[int, int]]:
        """Where evaluation cuts these rows: begin and end of each part."""
        batch, begin = self.evaluation_batch(inputs), 0
        for size in (batch, min(PART_ROWS, batch), 1):
            while begin + size <= len(inputs[0]):
                yield begin, begin + size
                begin += size

    def _step(self, numbers: Values, values: Values, columns: Columns) -> tuple[Values, Any]:
        """One optimizer step on one batch: the new values, and the loss before it."""
        count = len(self.whole.variables)

        def forward(weights: Values) -> tuple[Any, tuple[Any, Values]]:
            x, y, row_weights = self.arguments(*columns)
            with self._scope(_replaced(values, self._trainable, weights)) as scope:
                loss = self.model.compute_loss(
                    x, y, self.model(x, training=True), row_weights, training=True
                )
                after = [scope.get_current_value(variable) for variable in self.whole.variables]
                return self.optimizer.scale_loss(loss), (loss, after)

        weights = [values[position] for position in self._trainable]
        with _lent(self.numbers, numbers):
            gradients, (loss, after) = jax.grad(forward, has_aux=True)(weights)
            # What layers do to their own weights is not kept, as in Keras; what the optimizer does
            # is.
            with self.one_rate():
                weights, optimizer = self.optimizer.stateless_apply(
                    values[count:], gradients, weights
                )
        return [*_replaced(after, self._trainable, weights), *optimizer], loss

    def _block(self, numbers: Values, values: Values, blocks: Columns) -> tuple[Values, Any]:
        """One step per batch of the blocks, arrays of shape (steps, batch, ...)."""
        return jax.lax.scan(partial(self._step, numbers), values, blocks)

    def _loop(
        self, numbers: Values, values: Values, columns: Columns, order: Any, steps: Any, batch: int
    ) -> tuple[Values, Any]:
        """So many steps over batches in this order."""

        def body(position: Any, carried: tuple[Values, Any]) -> tuple[Values, Any]:
            values, losses = carried
            chosen = jax.lax.dynamic_slice(order, (position * batch,), (batch,))
            found = map_arrays(columns, lambda array: jnp.take(array, chosen, 0, mode="clip"))
            values, loss = self._step(numbers, values, found)
            return values, losses.at[position].set(loss)

        losses = jnp.zeros(len(order) // batch, jnp.float32)
        return jax.lax.fori_loop(0, steps, body, (values, losses))  # type: ignore[no-any-return]

    def _evaluate_batch(
        self, numbers: Values, values: Values, states: Values, columns: Columns
    ) -> tuple[Any, Values]:
        """The mean loss of one batch, and the metrics' variables with it added."""
        x, y, _ = self.arguments(*columns)
        metrics = zip(self.metrics.variables, states, strict=True)
        with _lent(self.numbers, numbers), self._scope(values, metrics) as scope:
            predicted = self.model(x, training=False)
            loss = self.model.compute_loss(x, y, predicted, training=False)
            self.metrics.update(y, predicted)
        return loss, [scope.get_current_value(variable) for variable in self.metrics.variables]

    def _outputs(self, values: Values, inputs: list[Any]) -> list[Any]:
        with self._scope(values):
            outputs = self.model(packed(inputs), training=False)
        return jax.tree.leaves(outputs)

    def _scope(self, values: Values, more: Iterable[tuple[Any, Any]] = ()) -> keras.StatelessScope:
        """Where Keras' variables have these values, and what changes them changes nothing
        outside.
        """
        return keras.StatelessScope(
            [*zip(self.variables, values, strict=True), *more], collect_losses=True
        )


@contextmanager
def _lent(variables: Sequence[Any], values: Values) -> Iterator[None]:
    """Variables with other values, also in the scopes that an optimizer opens by itself."""
    kept = _held(variables)
    _assign(variables, values)
    try:
        yield
    finally:
        _assign(variables, kept)


@contextmanager
def _out_of_memory() -> Iterator[None]:
    """XLA has one exception for everything, which names the reason in front."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if str(error).startswith("RESOURCE_EXHAUSTED"):
            raise MemoryError(str(error).partition(": ")[2]) from error
        raise


def _sum(losses: Sequence[tuple[Any, int]], rows: npt.NDArray[np.int64]) -> float:
    """That of so many first losses of each array, each times the rows of its batch."""
    with _out_of_memory():
        means = [np.ravel(np.asarray(array, np.float64))[:count] for array, count in losses]
    return float(np.concatenate(means) @ rows)


def _held(variables: Iterable[Any]) -> Values:
    return [variable.value for variable in variables]


def _on_device(variables: Sequence[Any]) -> Values:
    """Their values for several calls, which are brought to the device once."""
    values = _held(variables)
    if any(isinstance(value, np.ndarray) for value in values):
        values = jax.device_put(values)
        _assign(variables, values)
    return values


def _assign(variables: Iterable[Any], values: Values) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _replaced(values: Values, positions: Sequence[int], new: Values) -> Values:
    found = dict(zip(positions, new, strict=True))
    return [found.get(position, value) for position, value in enumerate(values)]
