"""Several model selections in one run, one for each group of rows, each with its own rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import (
    Capacity,
    Decision,
    Decisions,
    Rule,
    Trial,
    Trials,
)


@dataclass(frozen=True)
class GroupedRules:
    """The rules of all model selections.

    If the capacity is small, selections that have begun the fewest configs go first. Each of them
    then has a result when the time is over.
    """

    rules: Mapping[str | None, Rule]  # by group; None for the selection over all rows

    @property
    def accepts_new_configs(self) -> bool:
        """See `Rule`."""
        return all(rule.accepts_new_configs for rule in self.rules.values())

    @property
    def decision_epochs(self) -> Sequence[int]:
        """See `Rule`."""
        return tuple(
            sorted({epoch for rule in self.rules.values() for epoch in rule.decision_epochs})
        )

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`; the rule of `latest` decides first, then the others within the capacity."""
        trials_by_group = self._divide(trials)

        def decide_group(group: str | None, slots: int, latest: int | None) -> Decisions:
            group_trials = trials_by_group[group]
            group_capacity = Capacity(slots, can_add=group in capacity.groups)
            return _apply(
                group_trials, self.rules[group].decide(group_trials, group_capacity, latest)
            )

        decisions = list[Decision]()
        if latest is not None:
            decisions += decide_group(trials[latest].group, capacity.free_slots, latest)
        progressed = True
        while progressed:
            progressed = False
            for group in sorted(self.rules, key=lambda group: _count_begun(trials_by_group[group])):
                slots = min(1, max(0, capacity.free_slots - len(decisions)))
                new = decide_group(group, slots, None)
                decisions += new
                progressed = progressed or bool(new)
        return decisions

    def is_finished(self, trials: Trials) -> bool:
        """See `Rule`; return True if all selections that have trials are finished."""
        return all(
            self.rules[group].is_finished(group_trials)
            for group, group_trials in self._divide(trials).items()
            if group_trials
        )

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`; list the losers selection by selection."""
        return [
            key
            for group, group_trials in self._divide(trials).items()
            for key in self.rules[group].list_losers(group_trials)
        ]

    def _divide(self, trials: Trials) -> dict[str | None, dict[int, Trial]]:
        """Return the trials of each selection, by group and mst_key."""
        by_group: dict[str | None, dict[int, Trial]] = {group: {} for group in self.rules}
        for key in sorted(trials):
            by_group[trials[key].group][key] = trials[key]
        return by_group


def trials_of_group(trials: Trials, group: str | None) -> Mapping[int, Trial]:
    """Return the trials of one selection."""
    return {key: trials[key] for key in sorted(trials) if trials[key].group == group}


def _count_begun(group_trials: Trials) -> int:
    return sum(trial.max_epoch > 0 for trial in group_trials.values())


def _apply(group_trials: dict[int, Trial], decisions: Decisions) -> Decisions:
    """Change the trials by the decisions, and return the decisions."""
    for decision in decisions:
        trial = group_trials[decision.mst_key]
        finished = trial.finished or decision.action in ("hold", "stop")
        group_trials[decision.mst_key] = trial._replace(
            max_epoch=decision.max_epoch, finished=finished
        )
    return decisions
