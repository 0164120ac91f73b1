"""When a configuration that gets no better is stopped; pure, so that a resumed run and a replay
decide alike.

The rule is that of Keras' EarlyStopping (keras.io/api/callbacks/early_stopping), asked each time
that metrics were computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cerebro_plpy.records import dataclass


class Verdict(NamedTuple):
    """The epoch with the best value, None while there is none; the one after which no other
    follows, if any; and how many further values cannot be the end, whatever they are."""

    best: int | None
    stopped: int | None
    certain: int


@dataclass(frozen=True)
class Patience:
    """How long a configuration may go on without a better value.

    A value counts as better where it is so by more than `min_delta`; `patience` values that are not
    better than the best, nor one of them than the `baseline`, are the end. The first
    `start_from_epoch` epochs do not count.
    """

    patience: int = 0
    min_delta: float = 0.0
    baseline: float | None = None
    start_from_epoch: int = 0
    larger: bool = False
    """Whether larger values are better."""

    def judge(self, values: Iterable[tuple[int, float]]) -> Verdict:
        """What comes of these values, each with its epoch, which count from 1, in their order; NaN
        is never the best.

        >>> Patience(patience=2).judge([(1, 0.5), (2, 0.3), (3, 0.4), (4, 0.3), (5, 0.1)])
        Verdict(best=2, stopped=4, certain=0)
        >>> Patience(patience=4).judge([(1, 0.5), (2, 0.3), (3, 0.4)])
        Verdict(best=2, stopped=None, certain=2)
        """
        best: tuple[int, float] | None = None
        waited = 0
        for epoch, value in values:
            if epoch <= self.start_from_epoch:
                continue
            waited += 1
            if value == value and (best is None or self._better(value, best[1])):
                best = epoch, value
                if self.baseline is None or self._better(value, self.baseline):
                    waited = 0
            elif waited >= self.patience and epoch > 1:
                return Verdict(best[0] if best else None, epoch, 0)
        return Verdict(best[0] if best else None, None, max(0, self.patience - waited - 1))

    def _better(self, value: float, other: float) -> bool:
        return value - self.min_delta > other if self.larger else value + self.min_delta < other
