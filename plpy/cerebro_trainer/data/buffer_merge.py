"""Neighbouring buffers as one, for jobs over tables whose buffers hold one group of rows each.

A config that sees all groups is to mix them in its batches, as it would if rows lay anywhere. Which
buffers become one block follows from their sizes alone, so that it does not matter whether they are
kept here or come off the wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer


class Blocks:
    """Buffers on their way into blocks of at least so many rows, pass by pass; without a number
    each is a block.
    """

    def __init__(self, rows: int | None) -> None:
        self._rows = rows
        self._waiting: list[Buffer] = []
        self._pass = 0

    def taken(self, buffer: Buffer, pass_no: int) -> Iterator[tuple[Buffer, int]]:
        """What is a block now that another buffer has come, with its pass."""
        if self._rows is None:
            yield buffer, pass_no
            return
        if pass_no != self._pass:
            yield from self.rest()
        self._pass = pass_no
        self._waiting.append(buffer)
        if sum(each.rows for each in self._waiting) >= self._rows:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[Buffer, int]]:
        """What is left, when no other buffer comes in its pass."""
        if self._waiting:
            block, self._waiting = joined(self._waiting), []
            yield block, self._pass


def joined(buffers: Sequence[Buffer]) -> Buffer:
    """The rows of buffers one after another, under the number of the first."""
    first = buffers[0]
    if len(buffers) == 1:
        return first
    weights = (
        None if first.sample_weights is None else _rows([each.sample_weights for each in buffers])
    )
    return Buffer(
        first.buffer_id,
        sum(each.rows for each in buffers),
        tuple(_rows(parts) for parts in zip(*(each.inputs for each in buffers), strict=True)),
        tuple(_rows(parts) for parts in zip(*(each.targets for each in buffers), strict=True)),
        sum(each.nbytes for each in buffers),
        weights,
    )


def _rows(parts: Sequence[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts)
