"""Memory limits of idle trainers: a small share, and none if other processes need the memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SHARE_DIVISOR = 8
"""Idle trainers may use this part of the memory, and as much must be free: one in so many bytes."""


class ControlGroups(NamedTuple):
    """The memory files of a version of control groups."""

    folder: str
    controller: str  # name in /proc/self/cgroup
    limit: str
    usage: str
    reclaimable: str  # field of memory.stat


CONTROL_GROUPS = (
    ControlGroups("/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"),
    ControlGroups(
        "/sys/fs/cgroup/memory",
        "memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def exceed_share(pids: Iterable[int]) -> bool:
    """Return whether idle processes use more memory than they may."""
    total, free = read_memory()
    shared = read_used_bytes(os.getpid())
    used = sum(max(0, read_used_bytes(pid) - shared) for pid in pids)
    return used > total // SHARE_DIVISOR or free < total // SHARE_DIVISOR


def has_headroom(pid: int, limit: int) -> bool:
    """Return whether a process uses at most a quarter of its memory limit.

    Memory that it shares with the fork server does not count.

    Args:
        limit: bytes; 0 for no limit.
    """
    if not limit:
        return True
    shared = read_used_bytes(os.getpid())
    return read_used_bytes(pid) - shared <= (limit - shared) // 4


def read_memory() -> tuple[int, int]:
    """Return the total bytes and the available bytes of the machine or of its control groups."""
    machine = (
        _read_number("/proc/meminfo", "MemTotal:") << 10,
        _read_number("/proc/meminfo", "MemAvailable:") << 10,
    )
    limits = [machine, *_read_control_groups()]
    total = min(total for total, _ in limits)
    available = min(available for _, available in limits)
    return total, max(0, available)


def read_used_bytes(pid: int) -> int:
    """Return the resident and swapped bytes of a process; 0 if it has ended."""
    path = f"/proc/{pid}/status"
    return (_read_number(path, "VmRSS:") + _read_number(path, "VmSwap:")) << 10


def _read_control_groups() -> Iterator[tuple[int, int]]:
    """Yield the total and available bytes of each control group that limits this process."""
    lines = _read("/proc/self/cgroup").splitlines()
    paths = dict(line.split(":", 2)[1:] for line in lines)
    for groups in CONTROL_GROUPS:
        group = Path(groups.folder + paths.get(groups.controller, "/"))
        for folder in (group, *group.parents):
            limit = _read(str(folder / groups.limit)).strip()
            usage = _read(str(folder / groups.usage)).strip()
            if limit.isdigit() and usage.isdigit():
                reclaimable = _read_number(str(folder / "memory.stat"), groups.reclaimable)
                yield int(limit), int(limit) - int(usage) + reclaimable
            if str(folder) == groups.folder:
                break


def _read_number(path: str, name: str) -> int:
    """Return the number behind a name in a file; 0 if it is missing."""
    match = re.search(rf"^{name}\s+(\d+)", _read(path), re.MULTILINE)
    return int(match[1]) if match else 0


def _read(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(encoding="ascii", errors="replace")
    return ""
