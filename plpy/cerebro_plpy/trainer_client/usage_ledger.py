"""What the trainer of this session, and this session itself, have cost since somebody was told
last.

It is told with the results of jobs, so that nothing waits for it. What is done between two is told
with the later one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cerebro_plpy.trainer_client.process.cpu_clock import Clock

if TYPE_CHECKING:
    from cerebro_plpy.trainer_client.connection import Link

KEY = "cerebro_cost"


class Ledger:
    """Of one session: `since` has the processor seconds of its process that were told, or are
    nobody's business.
    """

    def __init__(self, since: float) -> None:
        self._since = since
        self._trainer_seconds = 0.0  # of trainers that are gone, or were not to be told of
        self._job_began: float | None = None
        self.read_bytes = 0  # of states, since somebody was told last

    def job(self) -> None:
        """A job begins."""
        self._job_began = time.monotonic()

    def gone(self, link: Link) -> None:
        """The trainer of the session is another one from now on."""
        self._trainer_seconds += link.watch.clock.taken()

    def told(self, link: Link | None) -> dict[str, Any]:
        """All since the last time, as the fields of a `Cost`."""
        gpu = link is not None and link.spec.on_gpu and self._job_began is not None
        found = {
            "trainer_seconds": self._trainer_seconds + (link.watch.clock.taken() if link else 0.0),
            "backend_seconds": self.own(),
            "gpu_seconds": time.monotonic() - self._job_began if gpu and self._job_began else 0.0,
            "read_bytes": self.read_bytes,
            "peak_memory_bytes": link.watch.clock.peak() if link else 0,
        }
        self._trainer_seconds, self._job_began, self.read_bytes = 0.0, None, 0
        return found

    def own(self) -> float:
        """Processor seconds of this session alone since the last time."""
        now, took = time.process_time(), self._since
        self._since = now
        return now - took

    def untold(self, found: dict[str, Any]) -> None:
        """Nobody heard of that: it is told again."""
        self._since -= found["backend_seconds"]
        self._trainer_seconds += found["trainer_seconds"]
        self.read_bytes += found["read_bytes"]


def begin(gd: dict[str, Any]) -> None:
    """What this session did before is nobody's business."""
    gd[KEY] = Ledger(time.process_time())


class SessionClocks:
    """This session as that of a call, which begins now, and others that the call has beside its
    workers.
    """

    def __init__(self, gd: dict[str, Any]) -> None:
        begin(gd)
        self._gd = gd
        self._others: dict[int, Clock] = {}

    def look(self, pid: int) -> None:
        """See what another session has used by now."""
        self._others.setdefault(pid, Clock()).look(pid)

    def take_seconds(self) -> float:
        """Processor seconds of all of them since they were taken last."""
        return of(self._gd).own() + sum(clock.taken() for clock in self._others.values())


def of(gd: dict[str, Any]) -> Ledger:
    """The ledger of this session; of one that was opened for whoever asks, it begins with the
    session.
    """
    ledger: Ledger = gd.setdefault(KEY, Ledger(0.0))
    return ledger
