"""Whose turn it is with the trainer of a session, among those that hold it from one statement to
the next.

A query may read several streams of predictions by turns, and other calls come in between. Whoever
wants the trainer takes it, and who had it until then first fetches the answer that it still has to
get.
"""

from __future__ import annotations

from typing import Any, Protocol

KEY = "cerebro_turn"


class Holder(Protocol):
    """Who can hold a trainer."""

    def settle(self) -> None:
        """Fetch what the trainer still has to answer."""
        ...


def hold(gd: dict[str, Any], holder: Holder) -> None:
    """From now on it is this one's turn, until another takes the trainer."""
    gd[KEY] = holder


def held(gd: dict[str, Any], holder: Holder) -> bool:
    """Whether it still is."""
    return gd.get(KEY) is holder


def take(gd: dict[str, Any]) -> None:
    """Take the trainer from whoever holds it."""
    holder: Holder | None = gd.pop(KEY, None)
    if holder is not None:
        holder.settle()
