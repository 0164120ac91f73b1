"""Choose the trainers of our calls: new forks, or idle trainers of an earlier session.

Idle trainers and fork servers stay for a while after a call. Without this choice, measurements
would depend on the time since the previous call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench import measure
from bench.bench_server import BenchServer
from bench.measure import Process
from cerebro_db.server import provision

TrainerKind = Callable[[BenchServer, Callable[[], float]], float]
"""A function that makes a call with trainers of one kind, and returns the result of the call."""
LEAVING_SECONDS = 1.0
"""Time after a call in which its sessions end, so that their trainers become idle."""


@contextmanager
def forbid_kept_trainers(server: BenchServer) -> Iterator[None]:
    """Give sessions within the block no idle trainers of earlier sessions."""
    grant = "SELECT cerebro.grant_usage(%s::regrole, keep_trainers => %s)"
    server.value(grant, provision.ROLE, False, superuser=True)
    try:
        yield
    finally:
        server.value(grant, provision.ROLE, True, superuser=True)


def with_new_trainers(server: BenchServer, call: Callable[[], float]) -> float:
    """Return the result of a call whose trainers are new."""
    with forbid_kept_trainers(server):
        return call()


def with_kept_trainers(server: BenchServer, call: Callable[[], float]) -> float:
    """Return the result of the second of two calls, which uses the trainers of the first.

    Raises:
        RuntimeError: the second call used other trainers.
    """
    call()
    idle_trainers = _list_idle_trainers(server)
    result = call()
    new_trainers = _list_idle_trainers(server) - idle_trainers
    if new_trainers or not idle_trainers:
        raise RuntimeError(
            f"{len(new_trainers)} trainers were new; expected that all had been left by an earlier "
            "session"
        )
    return result


def list_trainers(server: BenchServer) -> list[Process]:
    """Return the trainers of a server."""
    return [
        process
        for process in measure.find_descendants(measure.list_processes(), [server.pid])
        if process.role == measure.TRAINERS
    ]


def _list_idle_trainers(server: BenchServer) -> set[tuple[int, int]]:
    """Return the pids and starts of the idle trainers, after all sessions have ended."""
    time.sleep(LEAVING_SECONDS)
    return {(process.pid, process.start) for process in list_trainers(server)}
