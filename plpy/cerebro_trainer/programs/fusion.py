"""What it is to train several states of one program as one, whatever framework does it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.programs.io_spec import Interface

LANES: Mapping[str, int] = {"fused_4": 4, "fused_8": 8, "fused_16": 16, "fused_32": 32}
"""How many states each form trains; there are few, since one is compiled for each."""


class Member(NamedTuple):
    """One state as its program holds it: the values of all variables, and the numbers that are no
    part of the state.
    """

    values: Sequence[npt.NDArray[Any]]
    numbers: Sequence[npt.NDArray[Any]]


class Fusion(ABC):
    """States of one program that are trained side by side, no more than the form has lanes.

    Law: what becomes of a state depends on the form, and on what `Program.train` names; not on the
    other states, nor on its place among them.
    """

    @abstractmethod
    def train(
        self, buffer: Buffer, orders: Sequence[npt.NDArray[np.int32]], batch_size: int
    ) -> list[float]:
        """One pass of each state over as many rows of a buffer, in an order of its own.

        Returns by state the sum over batches of mean batch loss times rows; NaN or Inf where a loss
        is.
        """

    @abstractmethod
    def values(self, place: int) -> Sequence[npt.NDArray[Any]]:
        """The values of all variables of the state at that place, in the order of `layout`."""


class StackedFusion(Fusion):
    """States whose values lie one behind another in arrays; those that are missing are copies of
    the first.
    """

    def __init__(self, lanes: int, interface: Interface, members: Sequence[Member]) -> None:
        self.interface, self._lanes, self._count = interface, lanes, len(members)
        filled = [*members, *[members[0]] * (lanes - len(members))]
        self.held: list[Any] = [
            np.stack(arrays) for arrays in zip(*(lane.values for lane in filled), strict=True)
        ]
        self.numbers = [
            np.stack(arrays) for arrays in zip(*(lane.numbers for lane in filled), strict=True)
        ]

    def train(
        self, buffer: Buffer, orders: Sequence[npt.NDArray[np.int32]], batch_size: int
    ) -> list[float]:
        lanes = [*orders, *[orders[0]] * (self._lanes - len(orders))]
        return [float(each) for each in self.trained(buffer, lanes, batch_size)[: self._count]]

    @abstractmethod
    def trained(
        self, buffer: Buffer, orders: Sequence[npt.NDArray[np.int32]], batch_size: int
    ) -> npt.NDArray[np.float64]:
        """See `train`, for an order of each lane."""

    def values(self, place: int) -> Sequence[npt.NDArray[Any]]:
        return [np.array(np.asarray(array)[place]) for array in self.held]
