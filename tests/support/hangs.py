"""The end of a property test that takes too long.

Hypothesis compares each example's draws with those of the examples before. An exception that
interrupts a draw looks as if data followed from something else: an error that hides the hang. So
only the body of a test is interrupted; a signal in a draw is sent again.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import hypothesis
import hypothesis.core

PACKAGE = Path(hypothesis.__file__).parent
RUNNER = Path(hypothesis.core.__file__)
"""The module of Hypothesis that calls the body of a test."""
AGAIN_SECONDS = 0.01


class Hang(BaseException):
    """A property test has taken too long: no failure for Hypothesis, which would try an example
    that hangs again.
    """


def is_in_hypothesis(frame: FrameType | None) -> bool:
    """Whether Hypothesis itself or a strategy runs, rather than the body of a test."""
    files = list(_list_files(frame))
    if files and PACKAGE in files[0].parents:
        return True
    callers = [file for file in files if PACKAGE in file.parents]
    return bool(callers) and callers[0] != RUNNER


def _list_files(frame: FrameType | None) -> Iterator[Path]:
    """Yield the files of the frames, the innermost first."""
    while frame is not None:
        yield Path(frame.f_code.co_filename)
        frame = frame.f_back


def start_timer(seconds: float) -> None:
    """Raise Hang in the body of the running test after that many seconds."""

    def end(_: int, frame: FrameType | None) -> None:
        if is_in_hypothesis(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        else:
            raise Hang(f"it takes longer than {seconds} s")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def stop_timer() -> None:
    """Forget the timer."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
