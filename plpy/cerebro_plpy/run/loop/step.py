"""Steps: the effects of one decision, which the epoch loop applies in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cerebro_plpy.database.sessions.async_dispatcher import Statement

Effect = Callable[[], object]
"""A method with its arguments, made by `functools.partial`."""


class Step(NamedTuple):
    """The effects of one decision.

    The log comes first: if it cannot be written, nothing has changed, and a run that resumes reads
    a log without gaps.
    """

    log: Sequence[Statement] = ()  # written in one transaction
    changes: Sequence[Effect] = ()  # of the state of the run, and of its search
    tasks: Sequence[Effect] = ()  # that workers start or stop
    notes: Sequence[Effect] = ()  # messages for the caller
