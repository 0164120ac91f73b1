"""The early stopping of a configuration that no longer improves; a pure rule.

A resumed run and a replay therefore decide alike. The rule is that of Keras' EarlyStopping
(keras.io/api/callbacks/early_stopping), applied each time that metrics were computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cerebro_plpy.records import dataclass


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

    def judge(self, values: Iterable[tuple[int, float]]) -> StoppingStatus:
        """Apply the rule to values, each with its epoch, in order; NaN is never the best value.

        >>> EarlyStoppingRule(patience=2).judge([(1, 0.5), (2, 0.3), (3, 0.4), (4, 0.3), (5, 0.1)])
        StoppingStatus(best_epoch=2, stopped_epoch=4, safe_values=0)
        >>> EarlyStoppingRule(patience=4).judge([(1, 0.5), (2, 0.3), (3, 0.4)])
        StoppingStatus(best_epoch=2, stopped_epoch=None, safe_values=2)
        """
        best_epoch: int | None = None
        best_value: float | None = None
        waited = 0
        for epoch, value in values:
            if epoch <= self.start_from_epoch:
                continue
            waited += 1
            is_number = value == value
            if is_number and (best_value is None or self._is_better(value, best_value)):
                best_epoch = epoch
                best_value = value
                if self.baseline is None or self._is_better(value, self.baseline):
                    waited = 0
            elif waited >= self.patience and epoch > 1:
                return StoppingStatus(best_epoch, epoch, 0)
        return StoppingStatus(best_epoch, None, max(0, self.patience - waited - 1))

    def _is_better(self, value: float, other: float) -> bool:
        if self.larger_is_better:
            return value - self.min_delta > other
        return value + self.min_delta < other
