"""Resource usage of this session and its trainer since the last report.

It is reported with the results of jobs, so that no request waits for it. Usage between two jobs is
reported with the later one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cerebro_plpy.database.platform_protocol import Globals
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.trainer_client.process.cpu_clock import Clock

if TYPE_CHECKING:
    from cerebro_plpy.trainer_client.connection import TrainerConnection

KEY = "cerebro_cost"


class Ledger:
    """The unreported usage of one session.

    Args:
        reported_seconds: CPU seconds of this process that are not to be reported (again).
    """

    def __init__(self, reported_seconds: float) -> None:
        self._reported_seconds = reported_seconds
        self._trainer_seconds = 0.0  # of trainers that have ended, or of costs that were restored
        self._job_start: float | None = None
        self.read_bytes = 0  # of states

    def begin_job(self) -> None:
        """Record that a job begins."""
        self._job_start = time.monotonic()

    def end_trainer(self, link: TrainerConnection) -> None:
        """Record that the session's trainer has ended or is replaced."""
        self._trainer_seconds += link.watch.clock.take_seconds()

    def take_cost(self, link: TrainerConnection | None) -> JsonObject:
        """Return the usage since the last report, as the fields of a `Cost`."""
        trainer_seconds = self._trainer_seconds
        gpu_seconds = 0.0
        peak = 0
        if link is not None:
            trainer_seconds += link.watch.clock.take_seconds()
            if link.spec.uses_gpu and self._job_start is not None:
                gpu_seconds = time.monotonic() - self._job_start
            peak = link.watch.clock.read_peak()
        cost = {
            "trainer_seconds": trainer_seconds,
            "backend_seconds": self.take_seconds(),
            "gpu_seconds": gpu_seconds,
            "read_bytes": self.read_bytes,
            "peak_memory_bytes": peak,
        }
        self._trainer_seconds = 0.0
        self._job_start = None
        self.read_bytes = 0
        return cost

    def take_seconds(self) -> float:
        """Return the CPU seconds of this process since the last report."""
        now = time.process_time()
        seconds = now - self._reported_seconds
        self._reported_seconds = now
        return seconds

    def restore(self, cost: JsonObject) -> None:
        """Add a cost whose report was lost, so that it is reported again."""
        self._reported_seconds -= cost["backend_seconds"]
        self._trainer_seconds += cost["trainer_seconds"]
        self.read_bytes += cost["read_bytes"]


def reset(gd: Globals) -> None:
    """Discard the unreported usage of this session."""
    gd[KEY] = Ledger(time.process_time())


class SessionClocks:
    """CPU clocks of the caller's session and other sessions of a call that are not workers."""

    def __init__(self, gd: Globals) -> None:
        reset(gd)
        self._gd = gd
        self._others: dict[int, Clock] = {}

    def look(self, pid: int) -> None:
        """Read the clock of another session."""
        self._others.setdefault(pid, Clock()).look(pid)

    def take_seconds(self) -> float:
        """Return the CPU seconds of all sessions since the last call."""
        others = sum(clock.take_seconds() for clock in self._others.values())
        return get_ledger(self._gd).take_seconds() + others


def get_ledger(gd: Globals) -> Ledger:
    """Return the ledger of this session.

    In a worker session, which was opened for its caller, all usage is reported.
    """
    ledger: Ledger = gd.setdefault(KEY, Ledger(0.0))
    return ledger
