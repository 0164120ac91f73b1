"""How much memory trainers may hold that nobody has: little, and none where it is wanted
elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

SHARE = 8
"""They hold at most one part in so many of all memory, while at least as much is free beside it."""
GROUPS = (
    ("/sys/fs/cgroup", "", ("memory.max", "memory.current", "inactive_file")),
    (
        "/sys/fs/cgroup/memory",
        "memory",
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
)
"""Where control groups lie, their controller in /proc, files of limit and use, and what of the use
can be freed.
"""


def short(pids: Iterable[int]) -> bool:
    """Whether these processes, which nobody needs just now, hold more than they may."""
    total, free = memory()
    shared = held(os.getpid())
    own = sum(max(0, held(pid) - shared) for pid in pids)
    return own > total // SHARE or free < total // SHARE


def roomy(pid: int, limit: int) -> bool:
    """Whether a process has taken at most a quarter of what a limit of its memory leaves it; 0 is
    no limit.
    """
    shared = held(os.getpid())
    return not limit or held(pid) - shared <= (limit - shared) // 4


def memory() -> tuple[int, int]:
    """Bytes in all, and bytes that are free or can be freed, here or in the control groups that
    this process is in.
    """
    rooms = [
        (
            _number("/proc/meminfo", "MemTotal:") << 10,
            _number("/proc/meminfo", "MemAvailable:") << 10,
        ),
        *_groups(),
    ]
    return min(total for total, _ in rooms), max(0, min(free for _, free in rooms))


def held(pid: int) -> int:
    """Bytes of memory of a process; 0 when it is gone."""
    return (
        _number(f"/proc/{pid}/status", "VmRSS:") + _number(f"/proc/{pid}/status", "VmSwap:")
    ) << 10


def _groups() -> Iterator[tuple[int, int]]:
    paths = dict(line.split(":", 2)[1:] for line in _read("/proc/self/cgroup").splitlines())
    for base, controller, (most, use, idle) in GROUPS:
        own = Path(base + paths.get(controller, "/"))
        for folder in (own, *own.parents):
            limit, used = (_read(str(folder / name)).strip() for name in (most, use))
            if limit.isdigit() and used.isdigit():
                yield (
                    int(limit),
                    int(limit) - int(used) + _number(str(folder / "memory.stat"), idle),
                )
            if str(folder) == base:
                break


def _number(path: str, name: str) -> int:
    found = re.search(rf"^{name}\s+(\d+)", _read(path), re.MULTILINE)
    return int(found[1]) if found else 0


def _read(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(encoding="ascii", errors="replace")
    return ""
