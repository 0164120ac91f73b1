"""What it is to train several states of one program as one, whatever framework does it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer

LANES: Mapping[str, int] = {"fused_4": 4, "fused_8": 8, "fused_16": 16, "fused_32": 32}
"""How many states each form trains; there are few, since one is compiled for each."""


class Member(NamedTuple):
    """One state as its program holds it: the values of all variables, and the numbers that are no part of the state."""

    values: Sequence[npt.NDArray[Any]]
    numbers: Sequence[npt.NDArray[Any]]


class Fusion(ABC):
    """States of one program that are trained side by side, no more than the form has lanes.

    Law: what becomes of a state depends on the form, and on what `Program.train` names; not on the other states, nor
    on its place among them.
    """

    @abstractmethod
    def train(self, buffer: Buffer, orders: Sequence[npt.NDArray[np.int32]], batch_size: int) -> list[float]:
        """One pass of each state over as many rows of a buffer, in an order of its own.

        Returns by state the sum over batches of mean batch loss times rows; NaN or Inf where a loss is.
        """

    @abstractmethod
    def values(self, place: int) -> Sequence[npt.NDArray[Any]]:
        """The values of all variables of the state at that place, in the order of `layout`."""
