"""The division of a network into shards, and the tasks of a pass over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import keras

from cerebro_trainer.programs.sharded.shard_swapping import ShardTask
from cerebro_trainer.programs.sharded.shards import PieceCost, make_shards
from cerebro_trainer.programs.tensorflow.partition_functions import TrainingStep

GRADIENT_BYTES = 4
"""Bytes of the gradient of one number."""


class PieceVariables(NamedTuple):
    """The variables of one piece, by position in a state."""

    weights: frozenset[int]  # all variables of the piece's layers
    non_trainable: frozenset[int]  # those that a forward pass in training changes
    all: frozenset[int]  # the weights with their slots of the optimizer


def find_piece_variables(
    pieces: Sequence[keras.Model], variables: Sequence[Any], slots: Mapping[int, Sequence[Any]]
) -> list[PieceVariables]:
    """Return the variables of each piece.

    Args:
        variables: all variables of a state.
        slots: the optimizer's slots by the id of their weight.
    """
    positions = {id(variable): position for position, variable in enumerate(variables)}

    def find_positions(some_variables: Iterable[Any]) -> frozenset[int]:
        return frozenset(
            positions[id(variable)] for variable in some_variables if id(variable) in positions
        )

    piece_variables = []
    for piece in pieces:
        weights = find_positions(piece.variables)
        non_trainable = find_positions(piece.non_trainable_variables)
        piece_slots = [
            find_positions(slots.get(id(weight), ())) for weight in piece.trainable_variables
        ]
        all_variables = weights.union(*piece_slots)
        piece_variables.append(PieceVariables(weights, non_trainable, all_variables))
    return piece_variables


class ShardPlan:
    """The shards of a network.

    Args:
        sizes: bytes of each variable of a state.
    """

    def __init__(
        self,
        pieces: Sequence[keras.Model],
        variables: Sequence[PieceVariables],
        sizes: Sequence[int],
    ) -> None:
        self._pieces = pieces
        self._variables = variables
        self._sizes = sizes
        self._measured_costs: list[PieceCost] | None = None
        self.shards = [range(number, number + 1) for number in range(len(pieces))]
        """The pieces of each shard; before a step is measured, each piece is a shard."""
        self.first_trained = next(
            (number for number, piece in enumerate(pieces) if piece.trainable_variables),
            len(pieces),
        )
        """Number of the first piece with weights to train."""

    @property
    def is_measured(self) -> bool:
        """True if the shards are final."""
        return self._measured_costs is not None

    @property
    def costs(self) -> list[PieceCost]:
        """Memory of each piece: measured, or its minimum."""
        if self._measured_costs is not None:
            return self._measured_costs
        costs = []
        for piece, variables in zip(self._pieces, self._variables, strict=True):
            state_bytes = self.count_bytes(variables.all)
            peak_bytes = state_bytes + _count_gradient_bytes(piece)
            names = [
                layer.name
                for layer in piece.layers
                if not isinstance(layer, keras.layers.InputLayer)
            ]
            costs.append(PieceCost(names, state_bytes, peak_bytes))
        return costs

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the gradients of all weights."""
        return sum(map(_count_gradient_bytes, self._pieces))

    def set_peaks(self, peaks: Sequence[int], available: int | None) -> bool:
        """Divide the network by the memory that its pieces took.

        Args:
            peaks: largest number of bytes while a piece was computed, by piece.
            available: bytes for the computation; None for no limit.

        Returns:
            Whether the next shard can be read while one is computed.
        """
        self._measured_costs = [
            cost._replace(peak=max(cost.peak, peak))
            for cost, peak in zip(self.costs, peaks, strict=True)
        ]
        self.shards, can_prefetch = make_shards(self._measured_costs, available)
        return can_prefetch

    def find_piece(self, task: ShardTask) -> int:
        """Return the number of the piece that a task is for, while each piece is a shard."""
        return next(
            number
            for number, variables in enumerate(self._variables)
            if task.positions <= variables.all
        )

    def count_bytes(self, positions: frozenset[int]) -> int:
        """Return the bytes of these variables."""
        return sum(self._sizes[position] for position in positions)

    def make_forward_task(self, shard: range, work: Callable[[], float]) -> ShardTask:
        """Return a task that reads the weights of a shard."""
        variables = self._variables[shard.start : shard.stop]
        weights = join_positions(piece.weights for piece in variables)
        return ShardTask(weights, frozenset(), work)

    def plan_training(self, step: TrainingStep) -> Iterator[ShardTask]:
        """Yield the tasks of a training step: forward through all shards, and back."""
        *front, last = self.shards
        for shard in front:
            untrained = self._variables[shard.start : min(shard.stop, self.first_trained)]
            changed = join_positions(variables.non_trainable for variables in untrained)
            task = self.make_forward_task(shard, partial(step.go_forward, shard))
            yield task._replace(changed=changed)
        yield self._make_training_task(last, partial(step.turn_around, last))
        for shard in reversed(front):
            if shard.stop > self.first_trained:
                yield self._make_training_task(shard, partial(step.go_backward, shard))

    def _make_training_task(self, shard: range, work: Callable[[], float]) -> ShardTask:
        variables = self._variables[shard.start : shard.stop]
        positions = join_positions(piece.all for piece in variables)
        return ShardTask(positions, positions, work)


def join_positions(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    """Return the union of sets."""
    return frozenset[int]().union(*sets)


def _count_gradient_bytes(piece: keras.Model) -> int:
    return sum(GRADIENT_BYTES * math.prod(variable.shape) for variable in piece.trainable_variables)
