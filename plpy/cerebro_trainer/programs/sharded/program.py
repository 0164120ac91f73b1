"""Training of a model that does not fit into its trainer's memory, shard by shard.

One shard is in memory, the others are in a file. A step goes forward shard by shard and retains the
activations between pieces. Then it goes back: it computes each piece again, its gradients, and its
optimizer's step. The compiled unit is a piece of the network (`models/partition.py`); a shard has
as many consecutive pieces as fit into memory. The bits therefore do not depend on the number of
shards. This is Hydra's spilling (https://arxiv.org/abs/2110.08633), for one model at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import keras
import numpy as np

from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.data.padding import join_batches
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import keras_model
from cerebro_trainer.models.partition import partition_model
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.fusion import Order
from cerebro_trainer.programs.keras_program import Tensors, compact, replace_method
from cerebro_trainer.programs.learner import Columns, Descriptions, Sums
from cerebro_trainer.programs.memory import (
    MemoryBudget,
    PeakMemory,
    read_used_bytes,
    return_freed_memory,
)
from cerebro_trainer.programs.program import SHARDED, Program
from cerebro_trainer.programs.sharded.shard_plan import (
    ShardPlan,
    find_piece_variables,
    join_positions,
)
from cerebro_trainer.programs.sharded.shard_swapping import ShardSwapper, ShardTask
from cerebro_trainer.programs.sharded.shards import (
    check_optimizer,
    check_pieces,
    describe_shards,
)
from cerebro_trainer.programs.tensorboard import Board
from cerebro_trainer.programs.tensorflow.partition_functions import (
    ForwardPass,
    PieceFunctions,
    TrainingStep,
    set_value,
)
from cerebro_trainer.programs.tensorflow.program import TensorflowProgram
from cerebro_trainer.state.state_file import StateFile
from cerebro_trainer.wire.frames import Array, Arrays

ACTIVATION_BYTES = 16 << 20
"""Largest size of all activations between two pieces, if nothing is trained."""


class ShardedProgram(TensorflowProgram):
    """A program whose state is in a file, except for the shards that are being computed."""

    modes = (SHARDED,)
    lanes: Mapping[str, int] = {}

    def __init__(self, spec: ProgramSpec, budget: MemoryBudget) -> None:
        return_freed_memory()
        self._slots: dict[int, list[Any]] = {}
        super().__init__(spec)
        self._budget = budget
        network_pieces = partition_model(self.network)
        piece_variables = find_piece_variables(network_pieces, self.variables, self._slots)
        swapped = join_positions(variables.all for variables in piece_variables)
        self._common_positions = [
            position for position in range(len(self.variables)) if position not in swapped
        ]
        self._pieces = [
            PieceFunctions(self, piece, self.target_types, self.weighted_target_types[-1])
            for piece in network_pieces
        ]
        self.plan = ShardPlan(network_pieces, piece_variables, self.layout.sizes)
        self._file = StateFile(self.layout)
        self._swapper = ShardSwapper(self._file, super().assign, self._unload)

    @property
    def least_bytes(self) -> int:
        """Bytes of all shards at once, without activations."""
        return self.layout.nbytes + self.plan.gradient_bytes

    def check(self, available: int | None) -> None:
        """Check that the program can be trained in shards.

        Args:
            available: bytes that it may take; None for no limit.

        Raises:
            ConfigError: the optimizer or a piece needs more.
        """
        check_optimizer(self.optimizer, self.resident_variables)
        if available is not None:
            check_pieces(self.plan.costs, available)

    @property
    def resident_variables(self) -> Tensors:
        return [self.variables[position] for position in self._common_positions]

    def describe_shards(self) -> Descriptions:
        return describe_shards(self.plan.costs, self.plan.shards)

    def read(self) -> Arrays:
        for position in self._common_positions:
            self._file.write(position, self.read_variable(self.variables[position]))
        return self._file.snapshot()

    def assign(self, position: int, value: Array) -> None:
        if position in self._common_positions:
            super().assign(position, value)
        else:
            self._file.write(position, value)

    def create_initial_state(self, seed: int) -> Arrays:
        variables = keras_model.outline(self._node, seed).variables
        return InitialState(variables, self._initial_optimizer)

    def wipe(self) -> None:
        super().wipe()
        self._file.clear()

    def _train_pass(self, buffer: Buffer, order: Order, batch_size: int, mode: str) -> float:
        inputs, targets = self.io_spec.convert(buffer)
        batches = [order[begin : begin + batch_size] for begin in range(0, len(order), batch_size)]

        def make_step(rows: Order) -> TrainingStep:
            return TrainingStep(
                self._pieces,
                self.resident_variables,
                self.plan.first_trained,
                [array[rows] for array in inputs],
                [array[rows] for array in targets],
            )

        total = 0.0
        if not self.plan.is_measured:
            total = self._measure_step(make_step(batches.pop(0)))
        tasks = chain.from_iterable(self.plan.plan_training(make_step(rows)) for rows in batches)
        return self._swapper.run(tasks, total, lambda total: not math.isfinite(total))

    def _measure_step(self, step: TrainingStep) -> float:
        """Take a step with each piece as a shard; divide the network by the memory they took."""
        peaks = [0] * len(self._pieces)
        self._swapper.can_prefetch = False

        def measure(task: ShardTask) -> float:
            piece = self.plan.find_piece(task)
            base = read_used_bytes() - self.plan.count_bytes(task.positions)
            with PeakMemory() as memory:
                result = task.work()
            peaks[piece] = max(peaks[piece], memory.peak_bytes - base)
            return result

        total = self._swapper.run(
            task._replace(work=partial(measure, task)) for task in self.plan.plan_training(step)
        )
        self._swapper.can_prefetch = self.plan.set_peaks(peaks, self._budget.remaining_bytes)
        return total

    def evaluate(self, buffer: Buffer) -> Sums:
        inputs, targets = self.io_spec.convert(buffer)
        self.metrics.reset()
        total = 0.0

        def evaluate_batch(activations: Tensors, rows: slice, penalties: Tensors) -> None:
            nonlocal total
            batch_targets = [array[rows] for array in targets]
            loss, last_penalties = self._pieces[-1].evaluate(activations, batch_targets)
            all_penalties = [*penalties, *last_penalties]
            if all_penalties:
                loss = keras.ops.sum([loss, *all_penalties])
            total += float(loss) * (rows.stop - rows.start)

        self._go_forward(inputs, self.choose_evaluation_batch(inputs), evaluate_batch)
        return [[total, float(buffer.rows)], *self.metrics.read_sums()]

    def predict(self, inputs: Arrays) -> list[Array]:
        arrays = self.io_spec.convert_inputs(inputs)
        parts: list[list[Array]] = []

        def predict_batch(activations: Tensors, rows: slice, penalties: Tensors) -> None:
            outputs, _ = self._pieces[-1].infer(activations)
            parts.append([output.numpy() for output in outputs])

        self._go_forward(arrays, self.choose_prediction_batch(arrays), predict_batch)
        return join_batches(parts)

    def _go_forward(
        self,
        inputs: Arrays,
        batch_size: int,
        process_batch: Callable[[Tensors, slice, Tensors], None],
    ) -> None:
        """Go forward with all rows, several batches at a time.

        Args:
            process_batch: called with the inputs of the last piece, the rows, and the penalties of
                all pieces before.
        """
        rows = len(inputs[0])
        batches = [
            slice(begin, min(begin + batch_size, rows)) for begin in range(0, rows, batch_size)
        ]
        group_size = max(1, ACTIVATION_BYTES // (batch_size * self._widest_layer_bytes))
        for begin in range(0, len(batches), group_size):
            group = batches[begin : begin + group_size]
            group_inputs = [[array[batch] for array in inputs] for batch in group]
            self._go_forward_at_once(group_inputs, group, process_batch)

    def _go_forward_at_once(
        self,
        inputs: Sequence[Tensors],
        batches: Sequence[slice],
        process_batch: Callable[[Tensors, slice, Tensors], None],
    ) -> None:
        forward_pass = ForwardPass(self._pieces, inputs)
        *front, last = self.plan.shards

        def process_last_shard() -> float:
            results = forward_pass.stop_before_last_piece(last)
            for (activations, penalties), batch in zip(results, batches, strict=True):
                process_batch(activations, batch, penalties)
            return 0.0

        tasks = [
            self.plan.make_forward_task(shard, partial(forward_pass.go_forward, shard))
            for shard in front
        ]
        self._swapper.run([*tasks, self.plan.make_forward_task(last, process_last_shard)])

    def describe_cuts(self) -> Descriptions:
        return []  # activations cannot be precomputed

    def compute_features(self, layer: str, inputs: Arrays) -> Array:
        raise _make_unsupported_error("what its layers give is not told")

    def predict_baseline(self, inputs: Arrays) -> Array:
        raise _make_unsupported_error("its predictions cannot be attributed to columns")

    def attribute(self, inputs: Arrays, columns: Columns, unit_weights: Floats) -> Array:
        raise _make_unsupported_error("its predictions cannot be attributed to columns")

    def open_board(self, folder: str) -> Board:
        raise _make_unsupported_error("no callbacks are written")

    def _build_network(self) -> keras.Model:
        """Return the network with variables that take no memory."""
        model = keras_model.outline(self._node)
        for variable in model.variables:
            keras_model.initialize_with_zeros(variable)
            _release_memory(variable)
        return model

    def _build_optimizer(self) -> list[Array]:
        """Create the optimizer's variables without memory; record the slots of each weight."""
        optimizer = self.optimizer
        add_variable = optimizer.add_variable_from_reference
        initial_values: dict[int, Array] = {}

        def add_slot(reference: Any, *args: Any, **kwargs: Any) -> Any:
            slot = add_variable(reference, *args, **kwargs)
            self._slots.setdefault(id(reference), []).append(slot)
            initial_values[id(slot)] = compact(self.read_variable(slot))
            _release_memory(slot)
            return slot

        with replace_method(optimizer, "add_variable_from_reference", add_slot):
            optimizer.build(self.trained_variables)
        return [
            initial_values[id(variable)]
            if id(variable) in initial_values
            else compact(np.asarray(variable))
            for variable in optimizer.variables
        ]

    def _unload(self, position: int) -> Array:
        variable = self.variables[position]
        value = self.read_variable(variable)
        _release_memory(variable)
        return value


def make_program(spec: ProgramSpec, budget: MemoryBudget) -> Program:
    """Return the program of a spec: in shards if the budget demands it or if it is too large."""
    program = ShardedProgram(spec, budget)
    available = budget.remaining_bytes
    if budget.mode == SHARDED:
        program.check(available)
        return program
    if available is None or program.least_bytes <= available:
        return TensorflowProgram(spec)
    try:
        program.check(available)
    except ConfigError:
        if program.layout.nbytes <= available:
            return TensorflowProgram(spec)  # its gradients need not all exist at the same time
        raise
    return program


class InitialState(Sequence[Array]):
    """The values of an initial state; those of weights are drawn when they are read."""

    def __init__(self, weights: Sequence[Any], optimizer_values: Arrays) -> None:
        self._weights = weights
        self._optimizer_values = optimizer_values

    def __len__(self) -> int:
        return len(self._weights) + len(self._optimizer_values)

    def __getitem__(self, position: Any) -> Any:
        count = len(self._weights)
        if position < count:
            return keras_model.compute_initial_value(self._weights[position])
        return self._optimizer_values[position - count]


def _release_memory(variable: Any) -> None:
    """Give a variable a value without rows; a scalar keeps its value."""
    if variable.shape:
        dtype = variable.value.dtype.as_numpy_dtype
        set_value(variable, np.zeros((0, *variable.shape[1:]), dtype))


def _make_unsupported_error(reason: str) -> ConfigError:
    return ConfigError(
        f"the model is larger than its trainer's memory: {reason}",
        sqlstate="0A000",
        hint="Ask the administrator to raise trainer_memory_mb in cerebro.setting.",
    )
