"""The mean of several states: what model averaging makes of the replicas of one model after an
epoch.

Replicas start from one state and train on a segment each; their mean, weighted by the rows that
each has trained on, is the state that the next epoch starts from. The optimizer's variables are
averaged like the weights, so that momentum goes on; what counts or seeds something cannot be
averaged and is that of the first replica.

Federated averaging (McMahan et al., 2017, algorithm 1); averaged momentum as in Yu, Jin and Yang,
2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from cerebro_trainer.errors import RequestError
from cerebro_trainer.state import serialization
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.serialization import Array, Assign, Note
from cerebro_trainer.wire.streams import Reading, Stream


class Mean:
    """The mean of the variables of the states that came so far; what is the same in all stays so to
    the bit.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._means: dict[int, Array] = {}

    def add(self, share: float, position: int, value: Array) -> None:
        """Add a variable of a state that counts for this share of what came so far, itself
        included.
        """
        before = self._means.setdefault(position, value)
        if before is not value and _averaged(value):
            wide = before.astype(np.promote_types(before.dtype, np.float32), copy=False)
            self._means[position] = wide + (value - wide) * np.float32(share)

    def assign(self, assign: Assign) -> None:
        """Set the variables to what was found."""
        for position, value in self._means.items():
            assign(position, value.astype(self._layout.dtypes[position], copy=False))


def _averaged(value: Array) -> bool:
    # The types of 16 bits that are not numpy's own have the kind V.
    return value.dtype.kind in "fV"


def read(layout: Layout, assign: Assign, note: Note, shares: Sequence[int]) -> Reading:
    """Read as many states as there are shares, one after another; the variables become their mean.

    `shares` are the rows that each state counts for.
    """
    if not shares or min(shares) < 0 or sum(shares) <= 0:
        raise RequestError(
            f"the shares of averaged states are {list(shares)}; expected numbers of rows"
        )
    stream, mean, total = Stream(), Mean(layout), 0
    for rows in shares:
        total += rows
        yield from serialization.read_one(
            stream, layout, partial(mean.add, rows / max(1, total)), note
        )
    yield from serialization.check_end(stream)
    mean.assign(assign)
