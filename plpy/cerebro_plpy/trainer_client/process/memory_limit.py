"""The memory limit of a trainer, and its clock, which are checked in the same wait loop.

The limit is enforced here, because a kernel that runs out of memory may end the whole server.
"""

from __future__ import annotations

import time

from cerebro_plpy.errors import ConfigurationLimit, OutOfMemory
from cerebro_plpy.trainer_client.process.cpu_clock import Clock
from cerebro_plpy.trainer_client.process.host_resources import used_bytes

PAUSE_SECONDS = 0.5  # between two checks
SETTLE_SECONDS = 0.05  # longer than a process shares its memory with a child that it starts


class MemoryWatch:
    """Periodic checks of a trainer's memory, from the wait loop of its backend.

    Args:
        limit: in bytes; 0 means no limit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last_check = time.monotonic()
        self._free: tuple[float, int] | None = None  # time of the reading and bytes
        self.clock = Clock()

    def check_start(self, pid: int) -> None:
        """Raise an error if a trainer that has just started exceeds the limit without a model."""
        self.clock.look(pid)
        if self._limit:
            check_limit(pid, self._limit, is_starting=True)

    def look(self, pid: int, *, is_starting: bool) -> None:
        """Read the clock, and raise an error if the trainer exceeds the limit.

        Args:
            is_starting: a model cannot be the reason.
        """
        self.clock.look(pid)
        now = time.monotonic()
        if self._limit and now - self._last_check >= PAUSE_SECONDS:
            self._last_check = now
            check_limit(pid, self._limit, is_starting=is_starting)

    def read_free_bytes(self, pid: int) -> int | None:
        """Return the bytes below the limit, at most 0.5 seconds old; None without a limit."""
        if not self._limit:
            return None
        now = time.monotonic()
        if self._free is None or now - self._free[0] >= PAUSE_SECONDS:
            self._free = (now, self._limit - used_bytes(pid))
        return self._free[1]


def check_limit(pid: int, limit: int, *, is_starting: bool) -> None:
    """Raise an error if a process and its children use more than `limit` bytes."""
    used = used_bytes(pid)
    if used <= limit:
        return
    # A process that is being started (vfork) shares its parent's memory until its own program runs,
    # and is then counted twice.
    time.sleep(SETTLE_SECONDS)
    used = min(used, used_bytes(pid))
    if used <= limit:
        return
    message = (
        f"the trainer used {used >> 20} MB of memory and was ended; its limit is {limit >> 20} MB"
    )
    remedy = "ask the administrator to raise trainer_memory_mb in cerebro.setting"
    if is_starting:
        raise ConfigurationLimit(
            f"while it started, {message}", hint=f"Use fewer workers, or {remedy}."
        )
    raise OutOfMemory(message, hint=f"Use smaller batches or models, or {remedy}.")
