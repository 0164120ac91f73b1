"""How the budget of a run ends it: by the clock, by what it has cost, and in a replay where the log
says that either ended the run before.

A configuration whose training is cut short has a model all the same once it was trained on one
segment.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping

from cerebro_plpy.errors import ConfigFailure, QueryCanceled
from cerebro_plpy.run.request.run_request import BUDGET_OVER, Deadline, FitRequest
from cerebro_plpy.run.state.config_state import ConfigTraining
from cerebro_plpy.scheduling.quota.cost_limits import ExceededLimit, Usage
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan


class BudgetOver(QueryCanceled):
    """A visit was still under way when the budget of its run was over."""


class Budget:
    """The time of a run, which begins now, and what it may cost; by now it has `spent` so much."""

    def __init__(self, request: FitRequest, spent: Callable[[], Usage]) -> None:
        began, deadline = time.monotonic(), request.deadline
        self._allowance, self._spent = request.cost_limits, spent
        self.excess: ExceededLimit | None = None
        self._endings, self._limited = request.replay.endings, bool(deadline or request.cost_limits)
        never = Deadline(math.inf, math.inf, math.inf)
        self._last_visit, self._cancel, self._over = (
            began + seconds for seconds in deadline or never
        )
        self._cancelled = False

    def put_off(self, seconds: float) -> None:
        """The run has waited so long for somebody."""
        self._last_visit, self._cancel, self._over = (
            moment + seconds for moment in (self._last_visit, self._cancel, self._over)
        )

    def look(self) -> None:
        """See whether the run has cost as much as it may: what that was once stays so."""
        if self._allowance and not self.excess:
            self.excess = self._allowance.find_exceeded(self._spent())

    @property
    def next_moment(self) -> float:
        """When there is something to do that no visit tells of."""
        if self._cancelled:
            return math.inf
        now = time.monotonic()
        moments = sorted((self._last_visit, self._cancel, self._over))
        return next((moment for moment in moments if moment > now), now)

    @property
    def ending(self) -> bool:
        """Whether no visit to train begins any more."""
        return self.excess is not None or time.monotonic() >= self._last_visit

    def _end(self, trained: bool) -> float:
        return self._cancel if trained else max(self._cancel, self._over)

    def cancels(self, trained: bool) -> bool:
        """Whether what is under way is to be cancelled now; once. Where no config was `trained`, it
        has longer.
        """
        if self._cancelled or time.monotonic() < self._end(trained):
            return False
        self._cancelled = True
        return True

    def visits_left(self, training: ConfigTraining) -> int:
        """How many visits a configuration may make until it is to be asked for the rest again."""
        ending = self._endings.get(training.config.mst_key)
        return ending.visits - training.visits - training.unstored if ending else sys.maxsize

    def ends_unevaluated(self, training: ConfigTraining) -> bool:
        """Whether the last state of a configuration was evaluated by nobody, in the run that is
        repeated.
        """
        ending = self._endings.get(training.config.mst_key)
        return bool(ending and not ending.evaluated)

    def ended(self, training: ConfigTraining) -> bool:
        """Whether a configuration is where the budget of the run that is repeated has ended it."""
        ending = self._endings.get(training.config.mst_key)
        return bool(ending and training.visits >= ending.visits)

    def rest(
        self, plan: Plan, training: ConfigTraining, progress: ConfigProgress, trained: bool
    ) -> ConfigProgress:
        """What a configuration has still to do, as it stands now; to be asked before any visit
        begins.

        It matters whether any was `trained`.
        """
        if self.ended(training):
            if self.ends_unevaluated(training):
                return schedule.end(progress)
            return schedule.expire(
                plan, progress, has_retained_state=False, evaluated=training.evaluated
            )
        if not self._limited:
            return progress
        now = time.monotonic()
        # The midst of an epoch is evaluated where a budget is over: it was, before the run was
        # interrupted.
        ended = training.evaluated and progress.kind == "train" and progress.epoch == training.epoch
        if now >= self._end(trained) or ended:
            return schedule.end(progress)
        if not self.ending:
            return progress
        return schedule.expire(plan, progress, training.best is not None, training.evaluated)

    def check_trained(self, plan: Plan, states: int, failed: Mapping[int, str]) -> None:
        """Raises ConfigFailure where there is no state to make a model of."""
        if self._limited and not states:
            over = (
                f"{BUDGET_OVER} ({self.excess.limit}: {self.excess.reason})"
                if self.excess
                else BUDGET_OVER
            )
            raise ConfigFailure(
                f"{over} before any configuration was trained on one of {len(plan.segments)} "
                "segments",
                detail=reasons(failed) or None,
                hint="Give it "
                f"{f'a larger {self.excess.limit}' if self.excess else 'a longer budget'}, or "
                "fewer rows.",
            )


def reasons(failed: Mapping[int, str]) -> str:
    """Why configurations failed, in one line."""
    return "; ".join(f"mst_key={key}: {reason}" for key, reason in sorted(failed.items()))
