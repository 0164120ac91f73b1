"""Which trainers calls of ours get: forks of a nursery that is there, or those that an earlier
session has left.

Both stay for a while after a call. Without this, what is measured would hang on the time since the
call before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench import measure
from bench.measure import Seen
from bench.place import Place
from cerebro_db.server import provision

Way = Callable[[Place, Callable[[], float]], float]
"""Makes a call, whose number it gives, by trainers of a kind."""
LEAVING_SECONDS = 1.0
"""So long after a call its sessions have ended, and left their trainers."""


@contextmanager
def forked(at: Place) -> Iterator[None]:
    """Within the block no session has a trainer that another one has left."""
    grant = "SELECT cerebro.grant_usage(%s::regrole, keep_trainers => %s)"
    at.value(grant, provision.ROLE, False, superuser=True)
    try:
        yield
    finally:
        at.value(grant, provision.ROLE, True, superuser=True)


def by_forks(at: Place, call: Callable[[], float]) -> float:
    """A call whose trainers are new forks."""
    with forked(at):
        return call()


def by_kept(at: Place, call: Callable[[], float]) -> float:
    """The second of two calls, whose trainers are all of the first; an error where they are not."""
    call()
    before = _left(at)
    found = call()
    others = _left(at) - before
    if others or not before:
        raise RuntimeError(
            f"{len(others)} trainers were new; expected that all had been left by an earlier "
            "session"
        )
    return found


def running(at: Place) -> list[Seen]:
    """The trainers of a server."""
    return [
        seen
        for seen in measure.descendants(measure.everything(), [at.pid])
        if seen.role == measure.TRAINERS
    ]


def _left(at: Place) -> set[tuple[int, int]]:
    """The trainers that wait for another session, when all sessions have gone: their numbers and
    starts.
    """
    time.sleep(LEAVING_SECONDS)
    return {(seen.pid, seen.started) for seen in running(at)}
