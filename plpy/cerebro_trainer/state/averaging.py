"""The mean of several states, which model averaging computes from the replicas after an epoch.

Replicas start from the same state, and each trains on its own segment. The next epoch starts from
their mean, weighted by the rows that each replica has trained on. Variables of the optimizer are
averaged like weights, so that momentum continues. Counters and seeds cannot be averaged: those of
the first replica are used.

Federated averaging (McMahan et al., 2017, algorithm 1); averaged momentum as in Yu, Jin and Yang,
2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from cerebro_trainer.errors import RequestError
from cerebro_trainer.state import readers
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.readers import Assign, ReportOrigin
from cerebro_trainer.wire.frames import Array
from cerebro_trainer.wire.streams import Reader, Stream


class Mean:
    """The mean of the variables of the states so far.

    Variables that are equal in all states keep their bits.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._means: dict[int, Array] = {}

    def add(self, share: float, position: int, value: Array) -> None:
        """Add a variable of a state.

        Args:
            share: weight of this state among all states so far, including itself.
        """
        mean = self._means.setdefault(position, value)
        if mean is not value and _can_be_averaged(value):
            mean = mean.astype(np.promote_types(mean.dtype, np.float32), copy=False)
            self._means[position] = mean + (value - mean) * np.float32(share)

    def assign(self, assign: Assign) -> None:
        """Set the variables of a program to the means."""
        for position, value in self._means.items():
            assign(position, value.astype(self._layout.dtypes[position], copy=False))


def _can_be_averaged(value: Array) -> bool:
    return value.dtype.kind in "fV"  # V: types of 16 bits that numpy itself does not have


def read_mean(
    layout: Layout, assign: Assign, report_origin: ReportOrigin, shares: Sequence[int]
) -> Reader:
    """Read several states, one after another; the variables become their mean.

    Args:
        shares: the rows that each state counts for.
    """
    if not shares or min(shares) < 0 or sum(shares) <= 0:
        raise RequestError(
            f"the shares of averaged states are {list(shares)}; expected numbers of rows"
        )
    stream = Stream()
    mean = Mean(layout)
    total = 0
    for rows in shares:
        total += rows
        add = partial(mean.add, rows / max(1, total))
        yield from readers.read_next_state(stream, layout, add, report_origin)
    yield from readers.check_end(stream)
    mean.assign(assign)
