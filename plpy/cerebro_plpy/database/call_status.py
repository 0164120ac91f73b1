"""The activity of a call, as lines for its caller.

Every wait of a call checks for interrupts many times a second. These checks also report the status
when a line is due.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

LINE_SECONDS = 10.0
"""Time between two lines of a call in its first minutes."""
LONG_LINE_SECONDS = 60.0
"""The same afterwards: a call that takes hours is not watched."""
LONG_SECONDS = 300.0
"""Time after which a call is long."""

LOOKING = "looking at the table"
PACKING = "packing"
QUEUED = "waiting in the queue"
STARTING = "starting trainers"
STORING = "computing activations"
COMPILING = "compiling"
TRAINING = "training"
PAUSED = "paused"
CHOOSING = "choosing the best"
EXPLAINING = "explaining"
REPEATING = "packing the rows again"


def describe_nothing() -> str:
    """Return no text: nothing is trained yet."""
    return ""


class CallStatus:
    """The phase of a call and the time of its budget.

    It reports nothing until `begin` or `begin_quietly`.

    Args:
        notify: sends the caller a message.
        clock: returns the seconds of a clock that never goes back.
    """

    def __init__(
        self, notify: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._notify = notify
        self._clock = clock
        self._began: float | None = None  # None: the call reports no status
        self._start = 0.0  # of the budget
        self._budget = 0.0
        self._next_line = 0.0
        self.phase = LOOKING
        self.describe_work: Callable[[], str] = describe_nothing
        """Returns what has been trained, such as `2 of 11 configurations done`."""

    def begin(self, budget: float, phase: str = LOOKING, used_seconds: float = 0.0) -> None:
        """Begin to report, with a first line at once.

        Args:
            budget: seconds that the call may take.
            phase: what the call does first.
            used_seconds: those that an interrupted call has used before.
        """
        self._began = self._clock()
        self._start = self._began - used_seconds
        self._budget = budget
        self.phase = phase
        self._report(self._began)

    def begin_quietly(self, phase: str) -> None:
        """Begin to report a call without a budget, whose first line comes only if it takes long."""
        self._began = self._clock()
        self._start = self._began
        self._budget = math.inf
        self._next_line = self._began + LINE_SECONDS
        self.phase = phase

    def enter(self, phase: str) -> None:
        """Begin a phase, which the next line names."""
        self.phase = phase

    def exclude(self, seconds: float) -> None:
        """Leave out time that the budget does not count, as in the queue."""
        self._start += seconds

    def describe_time(self) -> str:
        """Return the time that the call has taken, such as `12 s of 300 s`."""
        return self._describe_time(self._clock())

    def report_if_due(self) -> None:
        """Report the status if the last line was long enough ago."""
        if self._began is None:
            return
        now = self._clock()
        if now >= self._next_line:
            self._report(now)

    def _report(self, now: float) -> None:
        assert self._began is not None
        pause = LINE_SECONDS
        if now - self._began >= LONG_SECONDS:
            pause = LONG_LINE_SECONDS
        self._next_line = now + pause
        activities = filter(None, (self.phase, self.describe_work()))
        self._notify(f"{self._describe_time(now)}: {', '.join(activities)}")

    def _describe_time(self, now: float) -> str:
        elapsed = max(0.0, now - self._start)
        if self._budget < math.inf:
            return f"{elapsed:.0f} s of {self._budget:.0f} s"
        return f"{elapsed:.0f} s"
