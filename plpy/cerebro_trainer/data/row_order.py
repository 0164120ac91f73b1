"""The order of a buffer's rows in one pass: a pure function, so that visits can be replayed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.int32]
"""Positions of rows in a buffer."""


@dataclass(frozen=True, kw_only=True)
class VisitKey:
    """The identity of a visit in its run; with a buffer and a pass it decides a permutation."""

    seed: int
    mst_key: int
    epoch: int
    segment_id: int


@dataclass(frozen=True, kw_only=True)
class StepWindow:
    """The batches of a pass with a limited number of steps.

    A pass begins after the last batch of the previous one, and continues with the first batch after
    the end of the partition, like the epochs of Keras' `fit`. Batches keep their order in a pass.
    """

    steps: int  # batches of a pass
    total: int  # batches of the whole partition
    passes: int  # passes of each visit

    def select(
        self, rows: Rows, batch_size: int, first_batch: int, epoch: int, pass_no: int
    ) -> Rows:
        """Return the rows of a buffer that belong to a pass.

        Args:
            rows: all rows of the buffer, in order.
            first_batch: number of the buffer's first batch in the partition.
            epoch: counted from 1.
            pass_no: counted from 0 in the epoch.
        """
        if self.steps >= self.total:
            return rows
        begin = ((epoch - 1) * self.passes + pass_no) * self.steps
        batches = first_batch + np.arange(len(rows)) // batch_size
        return rows[(batches - begin) % self.total < self.steps]


def list_rows(rows: int) -> Rows:
    """Return all row positions in their stored order."""
    return np.arange(rows, dtype=np.int32)


def shuffle_buffer(visit: VisitKey, buffer_id: int, pass_no: int, rows: int) -> Rows:
    """Return all row positions of a buffer in the order of one pass."""
    key = (visit.seed, visit.mst_key, visit.epoch, visit.segment_id, buffer_id, pass_no)
    return shuffle(key, rows)


def shuffle(key: tuple[int, ...], rows: int) -> Rows:
    """Return row positions in an order that depends on `key` only, on any machine.

    The raw output of Philox is sorted instead of calling `Generator.permutation`. Numpy promises
    that the bits of a bit generator never change between versions, but not those of its
    distributions (NEP 19).
    """
    digest = hashlib.sha256(repr(key).encode()).digest()
    raw = np.random.Philox(key=int.from_bytes(digest[:16], "little")).random_raw(rows)
    return np.argsort(raw, kind="stable").astype(np.int32)
