"""A trainer's limit of memory, kept here because a kernel that has to choose may end the whole
server; and its clock, which is looked at meanwhile."""

from __future__ import annotations

import time

from cerebro_plpy.errors import ConfigurationLimit, OutOfMemory
from cerebro_plpy.trainer_client.process.cpu_clock import Clock
from cerebro_plpy.trainer_client.process.host_resources import used_bytes

PAUSE_SECONDS = 0.5  # between two looks
SETTLE_SECONDS = 0.05  # longer than a process shares its memory with one that it starts


class Watch:
    """Looks at a process now and then, from the wait loop of its backend."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes; 0 means none."""
        self._limit = limit
        self._looked = time.monotonic()
        self._room: tuple[float, int] | None = None
        self.clock = Clock()

    def begun(self, pid: int) -> None:
        """Raise an error where a process holds more than the limit before it has a model, however
        fast it started.
        """
        self.clock.look(pid)
        if self._limit:
            check(pid, self._limit, starting=True)

    def look(self, pid: int, *, starting: bool) -> None:
        """Raise an error where a process holds more than the limit; while it starts, no model is
        the reason.
        """
        self.clock.look(pid)
        now = time.monotonic()
        if self._limit and now - self._looked >= PAUSE_SECONDS:
            self._looked = now
            check(pid, self._limit, starting=starting)

    def room(self, pid: int) -> int | None:
        """How many bytes its limit leaves a process, as of some tenths of a second ago; None: there
        is no limit.
        """
        if not self._limit:
            return None
        now = time.monotonic()
        if self._room is None or now - self._room[0] >= PAUSE_SECONDS:
            self._room = now, self._limit - used_bytes(pid)
        return self._room[1]


def check(pid: int, limit: int, *, starting: bool) -> None:
    """Raise an error where a process and those that it started hold more than `limit` bytes."""
    used = used_bytes(pid)
    if used <= limit:
        return
    # A process that is being started (vfork) has its parent's memory until its own program runs:
    # seen twice, it is too.
    time.sleep(SETTLE_SECONDS)
    used = min(used, used_bytes(pid))
    if used <= limit:
        return
    message = (
        f"the trainer used {used >> 20} MB of memory and was ended; its limit is {limit >> 20} MB"
    )
    raising = "ask the administrator to raise trainer_memory_mb in cerebro.setting"
    if starting:
        raise ConfigurationLimit(
            f"while it started, {message}", hint=f"Use fewer workers, or {raising}."
        )
    raise OutOfMemory(message, hint=f"Use smaller batches or models, or {raising}.")
