"""Show the server's messages to users who have not said where messages go."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cerebro_db.driver import LOG, choose_level
from cerebro_db.result_set import escape_controls

INFORMATION = re.compile(r"(INFO|LOG|DEBUG)\b")
"""Start of a message that psql shows, but that asks for no attention."""
STATUS = re.compile(r"\w+:\s+\d+ s of \d+ s: ")
"""Start of a line about the progress of a call, which a progress bar shows as well."""


class NoticePrinter:
    """Default handler of messages.

    Messages go to the logger `cerebro_db` if it has a handler for them. Otherwise notices and
    warnings are printed to the standard error, as psql does.
    """

    def __init__(self) -> None:
        self._hides_status = False

    def handle(self, message: str) -> None:
        """Log a message, or print it if nothing logs it."""
        level = choose_level(message)
        if LOG.hasHandlers() and LOG.isEnabledFor(level):
            LOG.log(level, "%s", message)
        elif self._is_printed(message, level):
            lines = message.splitlines()
            print("\n".join(map(escape_controls, lines)), file=sys.stderr, flush=True)

    def _is_printed(self, message: str, level: int) -> bool:
        if level >= logging.WARNING:
            return True
        is_status = STATUS.match(message) is not None
        return not INFORMATION.match(message) and not (is_status and self._hides_status)

    @contextmanager
    def hide_status(self, hidden: bool) -> Iterator[None]:
        """Print no lines about the progress of a call, if `hidden`, until the block ends."""
        self._hides_status = hidden
        try:
            yield
        finally:
            self._hides_status = False
