"""The values of a run as they arrive, from which it decides to return before its budget is over."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet

from cerebro_plpy.run.request.run_request import FitRequest
from cerebro_plpy.scheduling.search.early_return import MIN_PERFECT_ROWS, ReturnRule


def make_return_rule(request: FitRequest) -> ReturnRule | None:
    """Return the rule of a request; None if the run is carried out in full."""
    if request.deadline is None or request.replay.endings:
        return None
    train = request.spec.train
    if train is None or not train.may_return:
        return None
    if train.start is not None:  # a refresh trains as many epochs as the best of its model
        return None
    ranking = request.spec.ranking
    split = train.split
    return ReturnRule(
        ranking.metric,
        ranking.descending,
        split.validation_rows,
        train.budget,
        request.starts,
    )


class ReturnWatch:
    """The best value of a run, and the moment of its last gain.

    Args:
        rule: None if the run does not return early.
        began: the moment at which the call began, on the monotonic clock.
    """

    def __init__(self, rule: ReturnRule | None, began: float) -> None:
        self._rule = rule
        self._began = began
        self._last_gain = began
        self._distance = math.inf  # the least one
        self._loss = math.inf  # the least one
        self._perfect: set[int] = set()  # configurations whose metric cannot get better
        self.reason: str | None = None  # of the return; None until then

    @property
    def starts(self) -> frozenset[int]:
        """Return the configurations that end before the run returns, by mst_key."""
        return frozenset() if self._rule is None else self._rule.starts

    @property
    def next_moment(self) -> float:
        """Return the moment at which the run has waited long enough; infinite if it need not."""
        if self._rule is None or self.reason is not None or self._distance == math.inf:
            return math.inf
        return self._last_gain + self._rule.compute_patience(self._last_gain - self._began)

    def postpone(self, seconds: float) -> None:
        """Postpone all moments: the run has waited."""
        self._began += seconds
        self._last_gain += seconds

    def note_value(self, mst_key: int, value: float, loss: float, now: float) -> None:
        """Note the value and the loss of a configuration after an epoch."""
        if self._rule is None or math.isnan(value):
            return
        distance = self._rule.compute_distance(value)
        if distance == 0.0:
            self._perfect.add(mst_key)
        is_gain = self._distance == math.inf or self._rule.is_gain(distance, self._distance)
        if is_gain:
            self._distance = distance
        if self._rule.is_loss_gain(loss, self._loss):
            self._loss = loss
            is_gain = True
        if is_gain:
            self._last_gain = now

    def find_reason(self, now: float, ended_keys: AbstractSet[int]) -> str | None:
        """Return the reason to return now; None to go on.

        Args:
            ended_keys: configurations that are not trained any more. One whose metric is perfect is
                trained to its end before, because its loss still falls.
        """
        if self._rule is None or self.reason is not None:
            return None
        are_starts_done = self._rule.starts <= ended_keys
        is_sure = self._rule.rows >= MIN_PERFECT_ROWS or are_starts_done
        if is_sure and self._perfect & ended_keys:
            return f"{self._rule.metric} cannot get better"
        if are_starts_done and now >= self.next_moment:
            waited = now - self._last_gain
            return f"{self._rule.metric} did not get better for {waited:.0f} s"
        return None

    def end(self, reason: str) -> None:
        """Note that the run returns."""
        self.reason = reason
