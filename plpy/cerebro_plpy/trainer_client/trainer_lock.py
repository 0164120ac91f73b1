"""Turns with the trainer of a session, among holders that use it across statements.

A query may read several streams of predictions in turn, and other calls may come in between. A user
takes the trainer at any time; the previous holder first fetches its pending answer.
"""

from __future__ import annotations

from typing import Protocol

from cerebro_plpy.database.platform_protocol import Globals

KEY = "cerebro_turn"


class Holder(Protocol):
    """A user of a trainer across statements."""

    def fetch_pending(self) -> None:
        """Fetch the pending answer of the trainer."""


def acquire(gd: Globals, holder: Holder) -> None:
    """Make a holder the current one, until another user takes the trainer."""
    gd[KEY] = holder


def is_holder(gd: Globals, holder: Holder) -> bool:
    """Return True if a holder is still the current one."""
    return gd.get(KEY) is holder


def preempt(gd: Globals) -> None:
    """Take the trainer from its current holder, if any."""
    holder: Holder | None = gd.pop(KEY, None)
    if holder is not None:
        holder.fetch_pending()
