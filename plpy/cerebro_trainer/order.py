"""The order of a buffer's rows in one pass: a function of place and time, so that visits can be replayed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a visit stands in its run; with buffer and pass it decides every permutation."""

    seed: int
    mst_key: int
    epoch: int
    segment_id: int


def natural(rows: int) -> npt.NDArray[np.int32]:
    """Row positions as they are stored."""
    return np.arange(rows, dtype=np.int32)


def permutation(place: Place, buffer_id: int, pass_no: int, rows: int) -> npt.NDArray[np.int32]:
    """Row positions of one pass over one buffer, shuffled; equal arguments give equal orders on any machine.

    Raw Philox output is sorted instead of calling `Generator.permutation`, because numpy promises that the
    bits of a bit generator never change between versions but not those of its distributions (NEP 19).
    """
    name = (place.seed, place.mst_key, place.epoch, place.segment_id, buffer_id, pass_no)
    digest = hashlib.sha256(repr(name).encode()).digest()
    raw = np.random.Philox(key=int.from_bytes(digest[:16], "little")).random_raw(rows)
    return np.argsort(raw, kind="stable").astype(np.int32)
