"""Training of a model that does not fit into its trainer's memory: its shards take turns, the
others lie in a file.

A step goes forward shard by shard and keeps what passes between pieces; then it goes back, and
computes each piece again, its gradients, and its optimizer's step. What is compiled is a piece of
the network (`models/partition.py`); a shard is as many consecutive pieces as there is memory for.
So the bits do not depend on the number of shards. It is Hydra's way of spilling
(https://arxiv.org/abs/2110.08633), for one model at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import keras_model
from cerebro_trainer.models.partition import pieces
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.keras_program import compact
from cerebro_trainer.programs.memory import (
    MemoryBudget,
    PeakMemory,
    read_used_bytes,
    return_freed_memory,
)
from cerebro_trainer.programs.program import (
    SHARDED,
    Array,
    Attributions,
    ColumnPositions,
    Program,
    Sums,
)
from cerebro_trainer.programs.sharded.shard_swapping import Turn, Turns
from cerebro_trainer.programs.sharded.shards import (
    Cost,
    cut,
    described,
    refuse_optimizer,
    refuse_pieces,
)
from cerebro_trainer.programs.tensorboard import Board
from cerebro_trainer.programs.tensorflow.partition_functions import PieceCode, Step, set_value
from cerebro_trainer.programs.tensorflow.program import TensorflowProgram
from cerebro_trainer.state.state_file import StateFile

PASSING_BYTES = 16 << 20
"""What may pass between two pieces at once where nothing is trained."""


class ShardedProgram(TensorflowProgram):
    """A program whose state is in a file, but for the shards that are computed just now."""

    modes = (SHARDED,)
    lanes: Mapping[str, int] = {}

    def __init__(self, spec: ProgramSpec, room: MemoryBudget) -> None:
        return_freed_memory()
        self._slots_of: dict[int, list[Any]] = {}
        super().__init__(spec)
        self._room = room
        places = {id(variable): position for position, variable in enumerate(self.variables)}
        found = pieces(self.network)
        self._weights = [frozenset(places[id(each)] for each in piece.variables) for piece in found]
        self._kept = [
            frozenset(
                places[id(each)]
                for each in piece.model.non_trainable_variables
                if id(each) in places
            )
            for piece in found
        ]
        self._all = [
            weights
            | {
                places[id(slot)]
                for each in piece.trained
                for slot in self._slots_of.get(id(each), ())
            }
            for weights, piece in zip(self._weights, found, strict=True)
        ]
        resting = frozenset[int]().union(*self._all)
        self._common = [
            position for position in range(len(self.variables)) if position not in resting
        ]
        self._codes = [PieceCode(self, piece, self.signature) for piece in found]
        self._first_trained = next(
            (n for n, piece in enumerate(found) if piece.trained), len(found)
        )
        self._file = StateFile(self.layout)
        self._turns = Turns(self._file, super().assign, self._take)
        self.shards = [range(number, number + 1) for number in range(len(found))]
        """The pieces of each; until a step was measured each piece is one."""
        self._measured: list[Cost] | None = None

    @property
    def least_bytes(self) -> int:
        """What all of it takes at once, without what is computed."""
        return self.layout.nbytes + sum(map(self._gradient_bytes, self._codes))

    def measured(self) -> None:
        """Leave the shards as they are, whatever the first step takes."""
        self._measured = self.costs

    def check(self, room: int | None) -> None:
        """ConfigError where it cannot be trained in so many bytes, in shards."""
        refuse_optimizer(self.optimizer, self.resident_variables)
        if room is not None:
            refuse_pieces(self.costs, room)

    @property
    def costs(self) -> list[Cost]:
        """What each piece takes of memory: measured, or at least."""
        if self._measured is not None:
            return self._measured
        return [
            Cost(
                code.piece.layers, size := self._bytes(positions), size + self._gradient_bytes(code)
            )
            for code, positions in zip(self._codes, self._all, strict=True)
        ]

    @property
    def resident_variables(self) -> list[Any]:
        return [self.variables[position] for position in self._common]

    def describe_shards(self) -> list[dict[str, object]]:
        return described(self.costs, self.shards)

    def read(self) -> Sequence[Array]:
        for position in self._common:
            self._file.write(position, self.read_variable(self.variables[position]))
        return self._file.snapshot()

    def assign(self, position: int, value: Array) -> None:
        if position in self._common:
            super().assign(position, value)
        else:
            self._file.write(position, value)

    def create_initial_state(self, seed: int) -> Sequence[Array]:
        return FreshValues(keras_model.outline(self._node, seed).variables, self._initial_optimizer)

    def wipe(self) -> None:
        super().wipe()
        self._file.clear()

    def _trained(
        self, buffer: Buffer, order: npt.NDArray[np.int32], batch_size: int, form: str
    ) -> float:
        inputs, targets = self.io_spec.convert(buffer)
        batches = [order[begin : begin + batch_size] for begin in range(0, len(order), batch_size)]

        def step(rows: npt.NDArray[np.int32]) -> Step:
            return Step(
                self._codes,
                self.resident_variables,
                ([a[rows] for a in inputs], [a[rows] for a in targets]),
            )

        total = 0.0
        if self._measured is None:
            total = self._pilot(step(batches.pop(0)))
        turns = chain.from_iterable(self._plan(step(rows)) for rows in batches)
        return self._turns.done(turns, total, lambda now: not math.isfinite(now))

    def evaluate(self, buffer: Buffer) -> Sums:
        inputs, targets = self.io_spec.convert(buffer)
        self.metrics.reset()
        total = 0.0

        def judged(given: list[Any], rows: slice, penalties: list[Any]) -> None:
            nonlocal total
            loss, own = self._codes[-1].judge(given, [array[rows] for array in targets])
            every = [*penalties, *own]
            total += float(keras.ops.sum([loss, *every]) if every else loss) * (
                rows.stop - rows.start
            )

        self._forwards(inputs, self.choose_evaluation_batch(inputs), judged)
        return [[total, float(buffer.rows)], *self.metrics.read_sums()]

    def predict(self, inputs: Sequence[Array]) -> list[Array]:
        fitted = self.io_spec.convert_inputs(inputs)
        parts: list[list[Array]] = []

        def told(given: list[Any], rows: slice, penalties: list[Any]) -> None:
            outputs, _ = self._codes[-1].infer(given)
            parts.append([output.numpy() for output in outputs])

        self._forwards(fitted, self.choose_prediction_batch(fitted), told)
        return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]

    def describe_cuts(self) -> list[dict[str, object]]:
        return []  # what a layer gives is not computed ahead

    def compute_features(self, layer: str, inputs: Sequence[Array]) -> Array:
        raise _not_here("what its layers give is not told")

    def attribute(
        self,
        inputs: Sequence[Array],
        columns: Sequence[ColumnPositions],
        patches: Sequence[ColumnPositions],
    ) -> Attributions:
        raise _not_here("its predictions cannot be attributed to columns")

    def open_board(self, folder: str) -> Board:
        raise _not_here("no callbacks are written")

    def _build_network(self) -> keras.Model:
        model = keras_model.outline(self._node)
        for variable in model.variables:
            keras_model.make_zero(variable)
            _empty(variable)
        return model

    def _build_optimizer(self) -> list[Array]:
        optimizer = self.optimizer
        add, fresh = optimizer.add_variable_from_reference, dict[int, Array]()

        def noted(reference: Any, *arguments: Any, **named: Any) -> Any:
            made = add(reference, *arguments, **named)
            self._slots_of.setdefault(id(reference), []).append(made)
            fresh[id(made)] = compact(self.read_variable(made))
            _empty(made)
            return made

        # Past the optimizer's own __setattr__, which would look for variables in it.
        object.__setattr__(optimizer, "add_variable_from_reference", noted)
        try:
            optimizer.build(self.trained_variables)
        finally:
            object.__delattr__(optimizer, "add_variable_from_reference")
        variables = optimizer.variables
        return [
            fresh[id(each)] if id(each) in fresh else compact(np.asarray(each))
            for each in variables
        ]

    def _take(self, position: int) -> Array:
        variable = self.variables[position]
        value = self.read_variable(variable)
        _empty(variable)
        return value

    def _forwards(
        self,
        inputs: Sequence[Array],
        batch: int,
        last: Callable[[list[Any], slice, list[Any]], None],
    ) -> None:
        """Go forward with all rows, some batches at a time; `last` is given what comes to the last
        piece.
        """
        rows = len(inputs[0])
        starts = range(0, rows, batch)
        several = max(1, PASSING_BYTES // (batch * self._widest_layer_bytes))
        for begin in range(0, len(starts), several):
            cuts = [
                slice(start, min(start + batch, rows)) for start in starts[begin : begin + several]
            ]
            passing = [([array[cut] for array in inputs], list[Any]()) for cut in cuts]
            turns = [
                Turn(
                    self._of(self._weights, shard),
                    frozenset(),
                    partial(self._through, passing, shard),
                )
                for shard in self.shards
            ]

            self._turns.done(
                [*turns[:-1], turns[-1]._replace(work=partial(self._ended, passing, cuts, last))]
            )

    def _through(self, passing: list[Any], shard: range) -> float:
        for number in shard:
            for place, (given, penalties) in enumerate(passing):
                outputs, own = self._codes[number].infer(given)
                passing[place] = outputs, [*penalties, *own]
        return 0.0

    def _ended(self, passing: list[Any], cuts: Sequence[slice], last: Callable[..., None]) -> float:
        self._through(passing, self.shards[-1][:-1])
        for (given, penalties), rows in zip(passing, cuts, strict=True):
            last(given, rows, penalties)
        return 0.0

    def _plan(self, step: Step) -> Iterator[Turn]:
        """The turns of a step."""
        first = self._first_trained
        *front, last = self.shards
        for shard in front:
            kept = self._of(self._kept, range(shard.start, min(shard.stop, first)))
            yield Turn(self._of(self._weights, shard), kept, partial(step.forward, shard, first))
        yield Turn(
            self._of(self._all, last), self._of(self._all, last), partial(step.turn, last, first)
        )
        for shard in reversed(front):
            if shard.stop > first:
                positions = self._of(self._all, shard)
                yield Turn(positions, positions, partial(step.back, shard, first))

    def _pilot(self, step: Step) -> float:
        """Do a step with each piece as a shard, and measure what each takes; then cut as there is
        memory.
        """
        peaks = [0] * len(self._codes)
        self._turns.ahead = False

        def measured(turn: Turn) -> float:
            shard = next(n for n, every in enumerate(self._all) if turn.positions <= every)
            base = read_used_bytes() - self._bytes(turn.positions)
            with PeakMemory() as peak:
                answer = turn.work()
            peaks[shard] = max(peaks[shard], peak.peak_bytes - base)
            return answer

        total = self._turns.done(
            turn._replace(work=partial(measured, turn)) for turn in self._plan(step)
        )
        self._measured = [
            cost._replace(peak=max(cost.peak, peak))
            for cost, peak in zip(self.costs, peaks, strict=True)
        ]
        self.shards, self._turns.ahead = cut(self._measured, self._room.remaining_bytes)
        return total

    def _of(self, sets: Sequence[frozenset[int]], shard: range) -> frozenset[int]:
        return frozenset[int]().union(*(sets[number] for number in shard))

    def _bytes(self, positions: frozenset[int]) -> int:
        return sum(self.layout.sizes[position] for position in positions)

    def _gradient_bytes(self, code: PieceCode) -> int:
        return sum(4 * math.prod(variable.shape) for variable in code.piece.trained)


def made(spec: ProgramSpec, room: MemoryBudget) -> Program:
    """The program of a spec: in shards where that form is asked for, or where it does not fit
    otherwise.
    """
    program, left = ShardedProgram(spec, room), room.remaining_bytes
    if room.mode != SHARDED and (left is None or program.least_bytes <= left):
        return TensorflowProgram(spec)
    try:
        program.check(left)
    except ConfigError:
        if room.mode != SHARDED and left is not None and program.layout.nbytes <= left:
            return TensorflowProgram(spec)  # its gradients need not all be there at once
        raise
    return program


class FreshValues(Sequence[Array]):
    """Initial values of weights, drawn one by one when they are wanted, and of an optimizer's
    variables.
    """

    def __init__(self, weights: Sequence[Any], optimizer: Sequence[Array]) -> None:
        self._weights = weights
        self._optimizer = optimizer

    def __len__(self) -> int:
        return len(self._weights) + len(self._optimizer)

    def __getitem__(self, position: Any) -> Any:
        count = len(self._weights)
        if position < count:
            return keras_model.initial_value(self._weights[position])
        return self._optimizer[position - count]


def _empty(variable: Any) -> None:
    if variable.shape:
        set_value(variable, np.zeros((0, *variable.shape[1:]), variable.value.dtype.as_numpy_dtype))


def _not_here(what: str) -> ConfigError:
    return ConfigError(
        f"the model is larger than its trainer's memory: {what}",
        sqlstate="0A000",
        hint="Ask the administrator to raise trainer_memory_mb in cerebro.setting.",
    )
