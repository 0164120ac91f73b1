"""Merging of consecutive buffers, for tables whose buffers contain one group of rows each.

A config that trains on all groups should mix them in its batches, as if the rows were in any order.
The sizes of the buffers alone decide which ones are merged. It does therefore not matter whether
they come from the cache or from the wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer


class BufferMerger:
    """Merges the buffers of a pass into blocks.

    Args:
        min_rows: a block ends when it has this many rows; None makes each buffer a block.
    """

    def __init__(self, min_rows: int | None) -> None:
        self._min_rows = min_rows
        self._pending: list[Buffer] = []
        self._pass_no = 0

    def add(self, buffer: Buffer, pass_no: int) -> Iterator[tuple[Buffer, int]]:
        """Add a buffer; yield each complete block with the number of its pass."""
        if self._min_rows is None:
            yield buffer, pass_no
            return
        if pass_no != self._pass_no:
            yield from self.flush()
        self._pass_no = pass_no
        self._pending.append(buffer)
        if sum(pending.rows for pending in self._pending) >= self._min_rows:
            yield from self.flush()

    def flush(self) -> Iterator[tuple[Buffer, int]]:
        """Yield the buffers that are not in a block yet as the last block of their pass."""
        if self._pending:
            block = merge_buffers(self._pending)
            self._pending = []
            yield block, self._pass_no


def merge_buffers(buffers: Sequence[Buffer]) -> Buffer:
    """Concatenate the rows of buffers; the result has the id of the first one."""
    first = buffers[0]
    if len(buffers) == 1:
        return first
    sample_weights = None
    if first.sample_weights is not None:
        sample_weights = _concatenate([buffer.sample_weights for buffer in buffers])
    inputs = zip(*(buffer.inputs for buffer in buffers), strict=True)
    targets = zip(*(buffer.targets for buffer in buffers), strict=True)
    return Buffer(
        buffer_id=first.buffer_id,
        rows=sum(buffer.rows for buffer in buffers),
        inputs=tuple(map(_concatenate, inputs)),
        targets=tuple(map(_concatenate, targets)),
        nbytes=sum(buffer.nbytes for buffer in buffers),
        sample_weights=sample_weights,
    )


def _concatenate(arrays: Sequence[Any]) -> npt.NDArray[Any]:
    return np.concatenate(arrays)
