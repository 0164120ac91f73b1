"""The early stopping of a configuration that no longer improves; a pure rule.

A resumed run and a replay therefore decide alike. The rule is that of Keras' EarlyStopping
(keras.io/api/callbacks/early_stopping), applied each time that metrics were computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cerebro_plpy.records import dataclass

NO_LOSSES: Mapping[int, float] = {}
"""For a rule that takes the first of equal values, as Keras does."""


class StoppingStatus(NamedTuple):
    """The result of the rule after some values."""

    best_epoch: int | None  # None without a value
    stopped_epoch: int | None  # the last epoch to train, if that is decided
    safe_values: int  # number of further values that cannot stop the config, whatever they are


@dataclass(frozen=True)
class EarlyStoppingRule:
    """The parameters of early stopping, as Keras names them."""

    patience: int = 0
    """Values in a row that do not improve on the best one, nor on the baseline, before the end."""
    min_delta: float = 0.0  # smallest difference that counts as an improvement
    baseline: float | None = None
    start_from_epoch: int = 0  # epochs up to this one do not count
    larger_is_better: bool = False

    def judge(
        self, values: Iterable[tuple[int, float]], losses: Mapping[int, float] = NO_LOSSES
    ) -> StoppingStatus:
        """Apply the rule to values, each with its epoch, in order; NaN is never the best value.

        Args:
            losses: by epoch; of epochs with equal values, one with a lower loss is better.

        >>> EarlyStoppingRule(patience=2).judge([(1, 0.5), (2, 0.3), (3, 0.4), (4, 0.3), (5, 0.1)])
        StoppingStatus(best_epoch=2, stopped_epoch=4, safe_values=0)
        >>> EarlyStoppingRule(patience=4).judge([(1, 0.5), (2, 0.3), (3, 0.4)])
        StoppingStatus(best_epoch=2, stopped_epoch=None, safe_values=2)
        >>> EarlyStoppingRule(patience=4).judge([(1, 0.0), (2, 0.0)], {1: 0.9, 2: 0.8})
        StoppingStatus(best_epoch=2, stopped_epoch=None, safe_values=3)
        """
        best_epoch: int | None = None
        best_value = math.nan
        best_loss = 0.0
        waited = 0
        for epoch, value in values:
            if epoch <= self.start_from_epoch:
                continue
            waited += 1
            loss = losses.get(epoch, 0.0)
            is_improvement = self._is_better(value, best_value)
            if best_epoch is None:
                is_improvement = not math.isnan(value)
            elif value == best_value:
                is_improvement = loss < best_loss
            if is_improvement:
                best_epoch = epoch
                best_value = value
                best_loss = loss
                if self.baseline is None or self._is_better(value, self.baseline):
                    waited = 0
            elif waited >= self.patience and epoch > 1:
                return StoppingStatus(best_epoch, epoch, 0)
        return StoppingStatus(best_epoch, None, max(0, self.patience - waited - 1))

    def _is_better(self, value: float, other: float) -> bool:
        if self.larger_is_better:
            return value - self.min_delta > other
        return value + self.min_delta < other
