"""The limits of a run: its budget, by the clock and by cost, and max_runtime.

The clock stands still while a run is paused or waits for workers: its moments are postponed.
"""

from __future__ import annotations

import math
import time

from cerebro_plpy.run.request.run_request import BUDGET_OVER, RETURNED, Deadline, FitRequest
from cerebro_plpy.run.state.return_watch import ReturnWatch, make_return_rule
from cerebro_plpy.scheduling.quota.cost_limits import ExceededLimit

TIME_OVER = "max_runtime was over"
NEVER = Deadline(math.inf, math.inf, math.inf)


class Limits:
    """The moments, on the monotonic clock, that end parts of a run; the run begins now."""

    def __init__(self, request: FitRequest) -> None:
        self.began = time.monotonic()
        deadline = request.deadline or NEVER
        self.last_visit = self.began + deadline.last_visit  # no visit to train begins afterwards
        self.cancel = self.began + deadline.cancel  # tasks are cancelled
        self.over = self.began + deadline.end  # the same, while no configuration has a state
        self.lost = self.over + deadline.grace  # they are cancelled even then
        self.max_runtime = math.inf
        if request.max_runtime is not None:
            self.max_runtime = self.began + request.max_runtime
        self.has_budget = bool(request.deadline or request.cost_limits)
        self.exceeded: ExceededLimit | None = None  # the cost limit; once exceeded, it stays so
        self.is_cancelled = False
        self.is_time_over = False  # max_runtime has passed, and the last visits are running
        self.return_watch = ReturnWatch(make_return_rule(request), self.began - deadline.elapsed)

    @property
    def next_moment(self) -> float:
        """Return when the budget next demands something, without any event from a worker."""
        if self.is_cancelled:
            return math.inf
        now = time.monotonic()
        moments = sorted(
            (self.last_visit, self.cancel, self.over, self.lost, self.return_watch.next_moment)
        )
        return next((moment for moment in moments if moment > now), now)

    def find_growth_end(self) -> float | None:
        """Return when trees end to grow, in seconds since 1970; None if the run has no deadline."""
        if math.isinf(self.last_visit):
            return None
        return time.time() + self.last_visit - time.monotonic()

    @property
    def is_ending(self) -> bool:
        """Return True if the budget allows no further visit to train."""
        if self.exceeded is not None or self.return_watch.reason is not None:
            return True
        return time.monotonic() >= self.last_visit

    @property
    def awaits_state(self) -> bool:
        """Return True if a run without a state waits for one beyond its budget."""
        return self.lost > self.over and self.exceeded is None

    @property
    def end_reason(self) -> str:
        """Return the reason in the log for configurations that the budget ends."""
        if self.return_watch.reason is not None:
            return f"{RETURNED}: {self.return_watch.reason}"
        return BUDGET_OVER

    @property
    def remaining(self) -> float:
        """Return the seconds until the budget or max_runtime is over; infinite without either."""
        return max(0.0, min(self.over, self.max_runtime) - time.monotonic())

    def is_over(self, *, has_state: bool) -> bool:
        """Return True if the budget allows nothing more.

        Args:
            has_state: a configuration has a state; until then the run has longer.
        """
        if time.monotonic() < self.cancel:
            return False
        return has_state or time.monotonic() >= self.lost

    def postpone(self, seconds: float) -> None:
        """Postpone all moments: the run has waited."""
        self.last_visit += seconds
        self.cancel += seconds
        self.over += seconds
        self.lost += seconds
        self.max_runtime += seconds
        self.return_watch.postpone(seconds)

    def exceed(self, limit: ExceededLimit) -> None:
        """Note that the run has cost as much as it may."""
        self.exceeded = limit

    def note_cancelled(self) -> None:
        """Note that the tasks of the workers are cancelled."""
        self.is_cancelled = True

    def note_time_over(self) -> None:
        """Note that max_runtime has passed."""
        self.is_time_over = True
