"""The order of a buffer's rows in one pass: a function of place and time, so that visits can be
replayed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.int32]
"""Positions of rows in a buffer."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a visit stands in its run; with buffer and pass it decides every permutation."""

    seed: int
    mst_key: int
    epoch: int
    segment_id: int


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Which batches a pass takes where a number of steps is given: it begins where the pass before
    it ended.

    So the passes go round the partition, as those of Keras' `fit` do. Within a pass batches keep
    their order.
    """

    steps: int
    total: int
    """Batches of the whole partition."""
    passes: int
    """In each visit."""

    def taken(self, rows: Rows, batch_size: int, first: int, when: tuple[int, int]) -> Rows:
        """Those of a buffer's rows in order that the pass takes; `first` is the number of its first
        batch.

        `when` is the epoch, from 1, and the pass, from 0.
        """
        if self.steps >= self.total:
            return rows
        epoch, pass_no = when
        begin = ((epoch - 1) * self.passes + pass_no) * self.steps
        batches = first + np.arange(len(rows)) // batch_size
        return rows[(batches - begin) % self.total < self.steps]


def natural(rows: int) -> Rows:
    """Row positions as they are stored."""
    return np.arange(rows, dtype=np.int32)


def permutation(place: Place, buffer_id: int, pass_no: int, rows: int) -> Rows:
    """Row positions of one pass over one buffer, shuffled."""
    return shuffled(
        (place.seed, place.mst_key, place.epoch, place.segment_id, buffer_id, pass_no), rows
    )


def shuffled(name: tuple[int, ...], rows: int) -> Rows:
    """Row positions in an order that follows from `name`; equal arguments give equal orders on any
    machine.

    Raw Philox output is sorted instead of calling `Generator.permutation`, because numpy promises
    that the bits of a bit generator never change between versions but not those of its
    distributions (NEP 19).
    """
    digest = hashlib.sha256(repr(name).encode()).digest()
    raw = np.random.Philox(key=int.from_bytes(digest[:16], "little")).random_raw(rows)
    return np.argsort(raw, kind="stable").astype(np.int32)
