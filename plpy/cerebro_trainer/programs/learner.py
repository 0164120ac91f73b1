"""The protocol of learners, common to networks and boosted trees.

A learner has the variables of one config at a time, which are its state. Configs of the same
architecture share a learner. This module knows no family and no framework.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.programs.tensorboard import Board
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.wire.frames import Array, Arrays

Sums: TypeAlias = list[list[float]]
ColumnPositions: TypeAlias = Sequence[Sequence[int]]
"""Positions of one table column in a row of each input array, by input."""
Columns: TypeAlias = Sequence[ColumnPositions]
Descriptions: TypeAlias = list[dict[str, object]]
"""JSON objects, one per thing that is described."""

MAX_CACHED_LEARNERS = 64
MAX_CACHED_BYTES = 2 << 30
"""Bytes of variables in all cached learners."""
MAX_INHERITED_LEARNERS = 24
"""The same limits for learners that the next session inherits, which may never come."""
MAX_INHERITED_BYTES = 256 << 20


class Attributions(NamedTuple):
    """Contribution of each column to a number or a probability, by row."""

    values: Array  # what the columns add to the output; shape (rows, columns)
    gap: Array  # by how much the sum of all columns misses the output; shape (rows,)
    patches: Array  # what the output loses when a patch is covered; shape (rows, patches)

    def scaled(self, factor: float) -> Attributions:
        """Return the attributions of a multiple of the output."""
        return Attributions(*(values * factor for values in self))


class Learner(ABC):
    """A model whose variables are the state of one config at a time.

    Laws, which the contract tests check over every family and framework:

    1. `write(read())` changes nothing. After `write(values)`, `read()` returns the same bits. The
       arrays that `read` returned never change afterwards.
    2. `create_initial_state(seed)` depends on the spec and `seed` alone. It leaves `read()`
       unchanged.
    3. Training depends on the variables, the rows, their order, and the arguments alone. Earlier
       configs of the learner have no influence.
    4. `evaluate`, `predict`, `predict_baseline` and `attribute` leave `read()` unchanged.
    5. `evaluate` returns sums: those of two buffers add up to those of both together.
    """

    layout: Layout

    @property
    @abstractmethod
    def step(self) -> int:
        """Training steps that the current state has taken: of an optimizer, or grown rounds."""

    @abstractmethod
    def read(self) -> Arrays:
        """Return the values of all variables, in the order of `layout`; they must not be changed.

        The arrays keep their values, even if the learner trains afterwards.
        """

    @abstractmethod
    def assign(self, position: int, value: Array) -> None:
        """Set one variable; the learner may keep the array itself.

        Args:
            value: array with the shape and dtype that `layout` has at this position.
        """

    def write(self, values: Arrays) -> None:
        """Set all variables."""
        for position, value in enumerate(values):
            self.assign(position, value)

    @abstractmethod
    def create_initial_state(self, seed: int) -> Arrays:
        """Return the variables of a config before its first step."""

    def reset_non_weights(self, seed: int) -> None:
        """Set all variables but the weights as in `create_initial_state`; weights follow later."""
        self.write(self.create_initial_state(seed))

    @abstractmethod
    def wipe(self) -> None:
        """Overwrite all remains of states and rows; compiled code stays."""

    @abstractmethod
    def set_hyperparameters(self, spec: ProgramSpec) -> None:
        """Set the numbers in which configs of one learner differ, such as the learning rate."""

    def release_rows(self) -> None:  # noqa: B027 (networks keep no rows)
        """Release rows that are kept for the next visit."""

    def check_state(self) -> None:  # noqa: B027 (networks have nothing to check)
        """Check values that were loaded; those of each variable fit the layout already.

        Raises:
            DamagedState: the values do not belong together.
        """

    def understands(self, mode: str | None) -> bool:
        """Return whether the learner can train in this mode; None stands for any mode."""
        return True

    @abstractmethod
    def evaluate(self, buffer: Buffer) -> Sums:
        """Return [loss times rows, rows], then each metric's flattened variables."""

    @abstractmethod
    def zero_sums(self) -> Sums:
        """Return the sums of `evaluate` over no rows: zeros."""

    @abstractmethod
    def compute_results(self, sums: Sums) -> dict[str, object]:
        """Return {"loss", "metrics"} from sums of `evaluate`, which may have been added up.

        The metrics are one number each, in compile order.
        """

    @abstractmethod
    def predict(self, inputs: Arrays) -> list[Array]:
        """Return the outputs, each of shape (rows, ...), for inputs of shape (rows, ...)."""

    @abstractmethod
    def predict_baseline(self, inputs: Arrays) -> Array:
        """Return the output that attributions begin from: that of a row of zeros, or a mean row.

        Args:
            inputs: rows, which have the shapes of the inputs.

        Returns:
            The learner's only output, flattened.
        """

    @abstractmethod
    def attribute(self, inputs: Arrays, columns: Columns, unit_weights: Floats) -> Array:
        """Attribute a weighted sum of the units of each row's output to its columns.

        Args:
            unit_weights: shape (rows, units).

        Returns:
            The part of each column in the sum, beyond the baseline, shape (rows, columns).
        """

    def open_board(self, folder: str) -> Board:
        """Return a writer of TensorBoard files in this folder.

        Raises:
            ConfigError: the learner cannot write them.
        """
        raise ConfigError(
            "callbacks are written by TensorFlow",
            sqlstate="0A000",
            hint="Train with backend => 'tensorflow'.",
        )


MakeLearner: TypeAlias = Callable[[ProgramSpec, MemoryBudget], Learner]


class Learners:
    """The learners of this process by key; the least recently used ones are dropped first."""

    def __init__(self, make_learner: MakeLearner) -> None:
        self._make_learner = make_learner
        self._cached: OrderedDict[tuple[str, int], Learner] = OrderedDict()

    def get(self, spec: ProgramSpec, budget: MemoryBudget, copy: int = 0) -> Learner:
        """Return a learner of this spec; make it if it is not cached.

        Args:
            copy: number of the learner among those of equal specs, which have their own variables.
        """
        key = (spec.key, copy)
        if key in self._cached and not self._cached[key].understands(budget.mode):
            del self._cached[key]
        if key not in self._cached:
            self._shrink(MAX_CACHED_LEARNERS - 1, MAX_CACHED_BYTES)
            self._cached[key] = self._make_learner(spec, budget)
        self._cached.move_to_end(key)
        return self._cached[key]

    def wipe(self) -> None:
        """Overwrite the data of a session that has ended; keep its last learners."""
        self._shrink(MAX_INHERITED_LEARNERS, MAX_INHERITED_BYTES)
        for learner in self._cached.values():
            learner.wipe()

    def release_rows(self) -> None:
        """Release rows that learners keep for the next visit."""
        for learner in self._cached.values():
            learner.release_rows()

    def _shrink(self, count: int, nbytes: int) -> None:
        while len(self._cached) > count or self._count_bytes() > nbytes:
            self._cached.popitem(last=False)
            gc.collect()  # learners hold cycles, and their variables are large

    def _count_bytes(self) -> int:
        return sum(learner.layout.nbytes for learner in self._cached.values())
