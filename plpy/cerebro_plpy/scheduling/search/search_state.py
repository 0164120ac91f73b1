"""The state of a search: the results that its rule has received, in order, and its decisions.

If visits have a fixed order, results reach the rule in an order that does not depend on time: by
the epochs that would have passed if all running configs trained side by side and every epoch took
equally long, and then by mst_key. A result waits for those before it. Otherwise, results reach the
rule as they arrive.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cerebro_plpy.scheduling.search.grouped_search import trials_of_group
from cerebro_plpy.scheduling.search.promotion_rules import Capacity, Decision, Rule, Trial


class DecisionBatch(NamedTuple):
    """Decisions that were made at once."""

    cause: int | None  # config whose result was decided on, by the first decision; None initially
    decisions: tuple[Decision, ...]
    sample_count: int = 0  # number of configs to sample and add now
    group: str | None = None  # group of the sampled configs
    act: str | None = None  # the user's command, if a user has decided instead of the rule


def group_by_result(
    decisions: Iterable[tuple[int | None, str | None, Decision]],
) -> tuple[DecisionBatch, ...]:
    """Group logged decisions into batches.

    Args:
        decisions: cause, act and decision, in order.
    """
    batches: list[DecisionBatch] = []
    for cause, act, decision in decisions:
        if cause is None or decision.mst_key == cause:
            batches.append(DecisionBatch(cause, (), act=act))
        batches[-1] = batches[-1]._replace(decisions=(*batches[-1].decisions, decision))
    return tuple(batches)


class TrialResult(NamedTuple):
    """The result of a running config."""

    value: float | None  # at its max_epoch
    end_reason: str | None = None  # None if the config may continue
    failed: bool = False


class Groups(NamedTuple):
    """The groups of configs, in a run over groups."""

    group_of: Mapping[int, str] = {}  # by mst_key
    sample_counts: Mapping[str, int] = {}  # number of configs that may be sampled, by group


NO_GROUPS = Groups()


class SearchState:
    """The trials of a search, and the results that its rule has still to receive.

    Args:
        width: number of configs to run at once, if the rule does not decide that.
        fixed: visits have a fixed order.
        sample_count: number of configs over all rows that may be sampled, each when a slot is free.
        groups: the groups of configs, and the numbers that may be sampled of each group.
    """

    def __init__(
        self,
        rule: Rule,
        mst_keys: Iterable[int],
        width: int,
        *,
        fixed: bool,
        sample_count: int = 0,
        groups: Groups = NO_GROUPS,
    ) -> None:
        self.rule = rule
        self.trials: dict[int, Trial] = {
            key: Trial(group=groups.group_of.get(key)) for key in sorted(mst_keys)
        }
        self._sample_counts: dict[str | None, int] = {
            None: sample_count,
            **dict(sorted(groups.sample_counts.items())),
        }
        self._width = width
        self._fixed = fixed
        self._start_times: dict[int, int] = {}
        """Virtual time in epochs at which each config would have begun its first epoch."""
        self._results: dict[int, TrialResult] = {}  # that the rule has not received yet
        self._curves: dict[int, dict[int, float]] = defaultdict(dict)
        self._user_epochs: dict[int, int] = {}  # last epoch of configs for which a user has set it
        self._time = 0  # virtual time in epochs
        self._has_begun = False
        self._extra_width = 0  # number of configs to run now, if more than the usual width
        self._must_refill = False  # slots may be free without a result, as after a user's command

    @property
    def is_running(self) -> bool:
        """Return True if a result for the rule is still to come."""
        return any(trial.is_running for trial in self.trials.values())

    @property
    def remaining_samples(self) -> int:
        """Return how many configs may still be sampled."""
        return sum(self._sample_counts.values())

    def stop_sampling(self, group: str | None) -> None:
        """Sample no further configs of a group; None for those over all rows."""
        self._sample_counts[group] = 0

    @property
    def max_epochs(self) -> Mapping[int, int]:
        """Return the last epoch that each config may train now."""
        return {key: trial.max_epoch for key, trial in self.trials.items()}

    def restore(
        self, history: Iterable[DecisionBatch], values: Mapping[int, Mapping[int, float]]
    ) -> None:
        """Restore the state of an interrupted search.

        Results that the rule had not received when the run was interrupted come next.

        Args:
            history: the decisions so far, in order.
            values: values by mst_key and epoch.
        """
        for key, curve in values.items():
            self._curves[key].update(curve)
        for batch in history:
            self._has_begun = True
            cause = batch.cause
            if cause is not None:
                self._receive(cause, values.get(cause, {}).get(self.trials[cause].max_epoch))
            for decision in batch.decisions:
                self._apply(decision, batch.act)
        self._must_refill = self._has_begun
        for key in self.trials:
            self._queue_result(key)

    def _queue_result(self, mst_key: int) -> None:
        """Queue the value at the `max_epoch` of a config for the rule, if it is known."""
        trial = self.trials[mst_key]
        curve = self._curves[mst_key]
        if trial.is_running and trial.max_epoch in curve:
            self._results[mst_key] = TrialResult(curve[trial.max_epoch])

    def report_value(self, mst_key: int, epoch: int, value: float) -> None:
        """Report the value of a config after an epoch."""
        self._curves[mst_key][epoch] = value
        if epoch == self.trials[mst_key].max_epoch:
            self._queue_result(mst_key)

    def report_end(self, mst_key: int, reason: str, *, failed: bool = False) -> None:
        """Report that a config has ended, whatever the rule decides."""
        if self.trials[mst_key].is_running:
            result = self._results.get(mst_key, TrialResult(None))
            self._results[mst_key] = result._replace(end_reason=reason, failed=failed)
        else:
            self._finish(mst_key, failed)

    def add_config(self, mst_key: int, group: str | None = None) -> None:
        """Add a config, on which the rule decides as on the others."""
        self.trials[mst_key] = Trial(group=group)
        self._must_refill = True

    def override(self, decision: Decision, act: str | None = None) -> None:
        """Apply a decision that the rule has not made.

        Args:
            act: the user's command, if a user has decided.
        """
        self._results.pop(decision.mst_key, None)
        self._apply(decision, act)
        self._queue_result(decision.mst_key)
        self._must_refill = True

    def fill_workers(self, idle: int) -> None:
        """Let further configs begin on idle workers, unless the order is fixed."""
        if not self._fixed:
            self._extra_width = idle + self._count_running()
            self._must_refill = True

    def decide(self) -> Iterator[DecisionBatch]:
        """Yield the rule's decisions, result by result."""
        while True:
            if self._must_refill or not self._has_begun:
                self._must_refill = False
                self._has_begun = True
                batch = self._ask_rule(None, None)
                if batch.decisions:
                    yield batch
                continue
            sampling = self._choose_samples()
            if sampling is not None:
                self._sample_counts[sampling.group] -= sampling.sample_count
                yield sampling
                continue
            key = self._next_key()
            if key is None:
                self._extra_width = 0
                return
            result = self._results.pop(key)
            self._receive(key, result.value)
            if result.end_reason:
                self._finish(key, result.failed)
            yield self._ask_rule(key, result.end_reason)

    def _finish(self, mst_key: int, failed: bool) -> None:
        self.trials[mst_key] = self.trials[mst_key]._replace(finished=True, failed=failed)

    def _count_running(self) -> int:
        return sum(trial.is_running for trial in self.trials.values())

    @property
    def _free_slots(self) -> int:
        return max(self._width, self._extra_width) - self._count_running()

    def _choose_samples(self) -> DecisionBatch | None:
        """Return how many configs to sample for free slots; None for none.

        Configs that have not begun take slots first. Of several selections, the one with the
        fewest configs gets one more.
        """
        count = self._free_slots - sum(trial.is_startable for trial in self.trials.values())
        if len(self._sample_counts) > 1:
            count = min(1, count)
        if count < 1:
            return None
        trials_by_group = {
            group: trials_of_group(self.trials, group)
            for group, remaining in self._sample_counts.items()
            if remaining
        }
        for group, trials in sorted(trials_by_group.items(), key=lambda item: len(item[1])):
            if not self.rule.is_finished(trials):
                return DecisionBatch(None, (), min(self._sample_counts[group], count), group)
        return None

    def _ask_rule(self, cause: int | None, end_reason: str | None) -> DecisionBatch:
        """Return the decisions of the rule, that on `cause` first, and apply them."""
        groups = frozenset(group for group, remaining in self._sample_counts.items() if remaining)
        capacity = Capacity(self._free_slots, bool(groups), groups)
        latest = cause
        if cause is not None and self.trials[cause].finished:
            latest = None
        decisions = list(self.rule.decide(self.trials, capacity, latest))
        if cause is not None:
            on_cause = (decision for decision in decisions if decision.mst_key == cause)
            first = next(on_cause, None) or self._decide_default(cause, end_reason)
            decisions = [first, *(decision for decision in decisions if decision is not first)]
        for decision in decisions:
            self._apply(decision)
        return DecisionBatch(cause, tuple(decisions))

    def _decide_default(self, mst_key: int, end_reason: str | None) -> Decision:
        """Return the decision on a config with a result if its rule has not decided on it."""
        trial = self.trials[mst_key]
        if end_reason:
            return Decision(mst_key, "stop", trial.max_epoch, end_reason)
        total_epochs = trial.inherited_epochs + trial.max_epoch
        reason = "others go on before it"
        if trial.finished or total_epochs == self.rule.decision_epochs[-1]:
            reason = "it was trained to the end"
        return Decision(mst_key, "rest", trial.max_epoch, reason)

    def _apply(self, decision: Decision, act: str | None = None) -> None:
        key = decision.mst_key
        if decision.action == "clone" and decision.parent is not None:
            parent = self.trials[decision.parent]
            inherited_epochs = parent.inherited_epochs + max(parent.values)
            self.trials[key] = Trial(inherited_epochs=inherited_epochs, group=parent.group)
        trial = self.trials[key]
        if decision.max_epoch > trial.max_epoch:
            self._start_times[key] = self._time - trial.max_epoch
        finished = decision.action in ("hold", "stop")
        if decision.action == "rest":
            finished = trial.finished
        self.trials[key] = trial._replace(max_epoch=decision.max_epoch, finished=finished)
        if act == "set_epochs":
            self._user_epochs[key] = decision.max_epoch
            self._finish_at_user_epoch(key)

    def _finish_at_user_epoch(self, mst_key: int) -> None:
        """Finish a config at the last epoch that a user has set, which rules must not exceed."""
        trial = self.trials[mst_key]
        last = self._user_epochs.get(mst_key, math.inf)
        if trial.max_epoch in trial.values and trial.max_epoch >= last:
            self.trials[mst_key] = trial._replace(finished=True)

    def _receive(self, mst_key: int, value: float | None) -> None:
        """Add a result to the trial that the rule sees, and advance the virtual time."""
        trial = self.trials[mst_key]
        self._time = self._end_time(mst_key)
        if value is None:
            return
        curve = {
            epoch: at_epoch
            for epoch, at_epoch in self._curves[mst_key].items()
            if epoch <= trial.max_epoch
        }
        values = {**trial.values, trial.max_epoch: value}
        self.trials[mst_key] = trial._replace(values=values, curve=curve)
        self._finish_at_user_epoch(mst_key)

    def _next_key(self) -> int | None:
        """Return the config whose result is next for the rule; None if that is still to come."""
        if not self._fixed:
            return next(iter(self._results), None)
        running = [key for key, trial in self.trials.items() if trial.is_running]
        first = min(running, key=lambda key: (self._end_time(key), key), default=None)
        return first if first in self._results else None

    def _end_time(self, mst_key: int) -> int:
        """Return the virtual time in epochs at which a config reaches its `max_epoch`."""
        return self._start_times[mst_key] + self.trials[mst_key].max_epoch
