"""A trainer's limit of memory, kept here because a kernel that has to choose may end the whole server."""

from __future__ import annotations

from cerebro_plpy.errors import ConfigurationLimit, OutOfMemory
from cerebro_plpy.resources import resident_bytes


def check(pid: int, limit: int, *, starting: bool) -> None:
    """Raise an error where a process holds more than `limit` bytes; while it starts, no model is the reason."""
    used = resident_bytes(pid)
    if used <= limit:
        return
    message = f"the trainer used {used >> 20} MB of memory and was ended; its limit is {limit >> 20} MB"
    raising = "ask the administrator to raise trainer_memory_mb in cerebro.setting"
    if starting:
        raise ConfigurationLimit(f"while it started, {message}", hint=f"Use fewer workers, or {raising}.")
    raise OutOfMemory(message, hint=f"Use smaller batches or models, or {raising}.")
