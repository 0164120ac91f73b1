"""Fusion: training several states of one program at once, whatever the framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.programs.io_spec import IoSpec
from cerebro_trainer.wire.frames import Array, Arrays

T = TypeVar("T")
Order: TypeAlias = npt.NDArray[np.int32]
"""Positions of the rows of a buffer in training order."""
Orders: TypeAlias = Sequence[Order]
"""One order per state, all of the same length."""
LaneLosses: TypeAlias = npt.NDArray[np.float64]
"""Sum over batches of mean batch loss times rows, by lane."""

LANES: Mapping[str, int] = {"fused_4": 4, "fused_8": 8, "fused_16": 16, "fused_32": 32}
"""States per call, by mode; there are few modes, since each one is compiled."""


class Member(NamedTuple):
    """One state of a fusion."""

    values: Arrays  # of all variables, in the order of the layout
    hyperparameters: Arrays  # of the program, but not part of the state


class Fusion(ABC):
    """States of one program that are trained at once; at most one per lane.

    Law: a state depends on the mode and on the arguments of `Program.train`. It does not depend on
    the other states, nor on its own lane.
    """

    @abstractmethod
    def train(self, buffer: Buffer, orders: Orders, batch_size: int) -> list[float]:
        """Train one pass of each state over rows of a buffer.

        Returns:
            By state the sum over batches of mean batch loss times rows; NaN or Inf once a loss is.
        """

    @abstractmethod
    def read_state(self, lane: int) -> Arrays:
        """Return the values of all variables of a state, in the order of `layout`."""


class StackedFusion(Fusion):
    """A fusion that stacks the values of its states; unused lanes are copies of the first state.

    Args:
        fused: the compiled loop of a framework, with its number of `lanes`.
    """

    def __init__(self, fused: Any, io_spec: IoSpec, members: Sequence[Member]) -> None:
        self.fused = fused
        self.io_spec = io_spec
        self._count = len(members)
        padded = pad_lanes(members, fused.lanes)
        self.values: list[Any] = _stack(member.values for member in padded)
        self.hyperparameters = _stack(member.hyperparameters for member in padded)

    def train(self, buffer: Buffer, orders: Orders, batch_size: int) -> list[float]:
        losses = self.train_lanes(buffer, pad_lanes(orders, self.fused.lanes), batch_size)
        return [float(loss) for loss in losses[: self._count]]

    @abstractmethod
    def train_lanes(self, buffer: Buffer, orders: Orders, batch_size: int) -> LaneLosses:
        """Train all lanes; `orders` has one entry per lane."""

    def read_state(self, lane: int) -> Arrays:
        return [np.array(np.asarray(array)[lane]) for array in self.values]


def pad_lanes(values: Sequence[T], lanes: int) -> list[T]:
    """Return a value for each lane; unused lanes have the first one."""
    return [*values, *[values[0]] * (lanes - len(values))]


def _stack(states: Iterable[Arrays]) -> list[Array]:
    return [np.stack(arrays) for arrays in zip(*states, strict=True)]
