"""The statement_timeout of the caller, and what to do about a call that it has ended."""

from __future__ import annotations

import time

SLACK = 0.95
"""Share of the timeout after which it counts as passed: its clock may start before a message's."""


class CallLimit:
    """When the caller's statement began, and how long it may take."""

    def __init__(self) -> None:
        self._began = 0.0  # in seconds since 1970
        self._seconds = 0.0  # 0 without a limit
        self._setting = "0"
        self.background: str | None = None  # the argument with which another session works
        self.run_id: int | None = None  # of the run that the call has begun and leaves behind

    def begin(self, began: float, seconds: float, setting: str) -> None:
        """Measure from when a statement began; `setting` is the limit as the caller has set it."""
        self._began = began
        self._seconds = seconds
        self._setting = setting

    def has_passed(self) -> bool:
        """Return whether the limit has ended the statement, if something has."""
        return 0 < self._seconds * SLACK <= time.time() - self._began

    @property
    def hint(self) -> str:
        """What to do about a statement that the limit has ended."""
        hint = f"statement_timeout is {self._setting}. SET statement_timeout = 0; then call again."
        if self.run_id is not None:
            hint = (
                f"statement_timeout is {self._setting}. SET statement_timeout = 0; SELECT "
                f"cerebro.resume({self.run_id}); trains the rest of the run."
            )
        if self.background is not None:
            hint = f"{hint} Or begin in the background, which has no limit: {self.background}."
        return hint
