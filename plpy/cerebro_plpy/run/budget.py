"""How the budget of a run ends it: by the clock, and in a replay where the log says that it ended the run before.

A configuration whose training is cut short has a model all the same once it was trained on one segment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from cerebro_plpy.errors import ConfigFailure, QueryCanceled
from cerebro_plpy.hopping import schedule
from cerebro_plpy.hopping.schedule import ConfigProgress, Plan
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.run.training import ConfigTraining

BUDGET_OVER = "the budget was over"  # in the log: of configurations, and of visits that were cancelled


class BudgetOver(QueryCanceled):
    """A visit was still under way when the budget of its run was over."""


class Budget:
    """The time of a run, which begins now; `cancels_at` is when what is under way is to be cancelled, which is once."""

    def __init__(self, request: FitRequest) -> None:
        self._deadline, self._endings = request.deadline, request.repeat.endings
        self._began = time.monotonic()
        self.cancels_at = self._began + (self._deadline.cancel if self._deadline else math.inf)

    def cancels(self) -> bool:
        """Whether what is under way is to be cancelled now; afterwards no more."""
        if time.monotonic() < self.cancels_at:
            return False
        self.cancels_at = math.inf
        return True

    def rest(self, plan: Plan, training: ConfigTraining, progress: ConfigProgress) -> ConfigProgress:
        """What a configuration has still to do, as it stands now; to be asked before any visit begins."""
        ending = self._endings.get(training.config.mst_key)
        if ending and training.visits >= ending.visits:
            if not ending.evaluated:
                return schedule.end(progress)
            return schedule.expire(plan, progress, kept=False, evaluated=training.evaluated)
        if self._deadline is None:
            return progress
        elapsed = time.monotonic() - self._began
        # The midst of an epoch is evaluated where a budget is over: it was, before the run was interrupted.
        ended = training.evaluated and progress.kind == "train" and progress.epoch == training.epoch
        if elapsed >= self._deadline.cancel or ended:
            return schedule.end(progress)
        if elapsed <= self._deadline.last_visit:
            return progress
        return schedule.expire(plan, progress, training.best is not None, training.evaluated)

    def check_trained(self, plan: Plan, states: int, failed: Mapping[int, str]) -> None:
        """Raises ConfigFailure where there is no state to make a model of."""
        if self._deadline and not states:
            raise ConfigFailure(
                f"{BUDGET_OVER} before any configuration was trained on one of {len(plan.segments)} segments",
                detail=reasons(failed) or None,
                hint="Give it a longer budget, or fewer rows.",
            )


def reasons(failed: Mapping[int, str]) -> str:
    """Why configurations failed, in one line."""
    return "; ".join(f"mst_key={key}: {reason}" for key, reason in sorted(failed.items()))
