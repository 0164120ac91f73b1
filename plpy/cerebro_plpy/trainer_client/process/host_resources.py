"""What the machine offers, so that defaults fit it: cores, memory, GPUs.

Limits of a container (control groups, version 2 and 1) count like those of the hardware.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress

NO_GPU = "-1"  # the device number that hides them all
TRAINER_BYTES = 1 << 30  # a trainer with its framework, a small model and some data
# Where control groups of version 2 and 1 lie, their controller in /proc, the files with limit and
# use, and the entry of memory.stat with what can be freed.
GROUPS = (
    ("/sys/fs/cgroup", "", ("memory.max", "memory.current", "inactive_file")),
    (
        "/sys/fs/cgroup/memory",
        "memory",
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
)


def shared(spare: int) -> tuple[int, ...]:
    """The processors on which trainers work where so many are spared for others: all but the first,
    at least one.
    """
    found = sorted(_usable())  # interrupts come to the first one, where nobody has moved them
    return tuple(found[min(spare, len(found) - 1) :])


def trainer_cores(spare: int) -> tuple[int, ...]:
    """The processors of trainers, where any are spared."""
    return shared(spare) if spare else ()


def cores() -> int:
    """Processors that the server may use, at least 1."""
    usable = len(_usable())
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        usable = min(usable, int(quota[0]) // int(quota[1]))
    return max(1, usable)


def _usable() -> set[int]:
    """Those of the server's first process: a session keeps to some of them while it begins."""
    return os.sched_getaffinity(os.getppid())


def width(trainers: int) -> int:
    """The threads of each of so many trainers, which share the cores.

    >>> width(cores()), width(2 * cores())
    (1, 1)
    """
    return max(1, cores() // trainers)


def described(framework: str) -> str:
    """How the name begins by which a trainer of a framework, without a GPU, calls this machine."""
    models = re.findall(r"^model name\s*: (.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return (
        f"{os.cpu_count()} x {models[0].strip() if models else platform.machine()}, CPU:0, "
        f"{framework} "
    )


def memory_bytes() -> int:
    """Bytes of memory that may be used in all."""
    return min([_meminfo("MemTotal"), *(limit for limit, _ in _groups())])


def available_bytes() -> int:
    """Bytes of memory that are free or can be freed now."""
    return max(0, min([_meminfo("MemAvailable"), *(free for _, free in _groups())]))


def _groups() -> Iterator[tuple[int, int]]:
    """Limit and free bytes of the control group of this process and of those around it, as far as
    they are limited.
    """
    paths = dict(line.split(":", 2)[1:] for line in _read("/proc/self/cgroup").splitlines())
    for base, controller, names in GROUPS:
        folder = (base + paths.get(controller, "/")).rstrip("/")
        while folder.startswith(base):
            limit, used = (_read(f"{folder}/{name}").strip() for name in names[:2])
            if limit.isdigit() and used.isdigit():
                # The kernel takes pages of files that nobody looked at lately first.
                idle = re.search(
                    rf"^{names[2]} (\d+)$", _read(f"{folder}/memory.stat"), re.MULTILINE
                )
                yield int(limit), int(limit) - int(used) + (int(idle[1]) if idle else 0)
            folder = os.path.dirname(folder)


def used_bytes(pid: int) -> int:
    """Memory in bytes that a process and those that it started hold, resident or swapped out; 0
    when it is gone.
    """
    return sum(map(_held_bytes, {pid, *_session(pid)}))


def _held_bytes(pid: int) -> int:
    found = re.findall(
        r"^(?:VmRSS|VmSwap):\s+(\d+) kB$", _read(f"/proc/{pid}/status"), re.MULTILINE
    )
    return sum(map(int, found)) * 1024


def _session(leader: int) -> Iterator[int]:
    """Processes of the session that a process leads: its children stay in it, unless they lead one
    of their own.
    """
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):  # it has ended meanwhile
            if os.getsid(pid) == leader:
                yield pid


def gpus() -> int:
    """NVIDIA devices of this machine."""
    return sum(1 for device in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", device))


def parallel_trainers() -> int:
    """How many trainers run well side by side: one a core as far as memory goes, at least 2."""
    return max(2, min(cores(), memory_bytes() // 2 // TRAINER_BYTES))


def _meminfo(field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB", _read("/proc/meminfo"), re.MULTILINE)
    return int(match.group(1)) * 1024 if match else TRAINER_BYTES


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
