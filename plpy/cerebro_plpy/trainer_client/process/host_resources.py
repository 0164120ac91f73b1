"""Cores, memory and GPUs of this machine, for defaults.

Limits of a container (control groups, version 2 and 1) count like those of the hardware.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress

NO_GPU = "-1"  # the device number that hides all GPUs
TRAINER_BYTES = 1 << 30  # memory of a trainer with its framework, a small model and some data
# Control groups of version 2 and 1: the folder; the controller in /proc; and the files with limit
# and use, and the entry of memory.stat with memory that can be freed.
GROUPS = (
    ("/sys/fs/cgroup", "", ("memory.max", "memory.current", "inactive_file")),
    (
        "/sys/fs/cgroup/memory",
        "memory",
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
)


def trainer_cores(reserved: int) -> tuple[int, ...]:
    """Return the cores of trainers: all but the first ones, which are reserved, at least one.

    By default the first core handles interrupts.
    """
    usable = sorted(_server_cores())
    return tuple(usable[min(reserved, len(usable) - 1) :])


def startup_cores(reserved: int) -> tuple[int, ...]:
    """Return the cores that sessions begin on: those of trainers if any are reserved, else any."""
    return trainer_cores(reserved) if reserved else ()


def count_cores() -> int:
    """Return the number of cores that the server may use, at least 1."""
    usable = len(_server_cores())
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        usable = min(usable, int(quota[0]) // int(quota[1]))
    return max(1, usable)


def _server_cores() -> set[int]:
    """Return the cores of the server's first process: a session is restricted while it begins."""
    return os.sched_getaffinity(os.getppid())


def threads_per_trainer(trainers: int) -> int:
    """Return the threads of each of several trainers that share the cores.

    >>> threads_per_trainer(count_cores()), threads_per_trainer(2 * count_cores())
    (1, 1)
    """
    return max(1, count_cores() // trainers)


def machine_prefix(framework: str) -> str:
    """Return the beginning of the name that a trainer without a GPU reports for this machine."""
    models = re.findall(r"^model name\s*: (.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    models.append(platform.machine())
    return f"{os.cpu_count()} x {models[0].strip()}, CPU:0, {framework} "


def memory_bytes() -> int:
    """Return the bytes of memory that may be used in total."""
    return min([_read_meminfo("MemTotal"), *(limit for limit, _ in _read_groups())])


def available_bytes() -> int:
    """Return the bytes of memory that are free or can be freed."""
    return max(0, min([_read_meminfo("MemAvailable"), *(free for _, free in _read_groups())]))


def _read_groups() -> Iterator[tuple[int, int]]:
    """Yield limit and free bytes of the control group of this process and of its ancestors.

    Groups without a limit are left out.
    """
    paths = dict(line.split(":", 2)[1:] for line in _read("/proc/self/cgroup").splitlines())
    for base, controller, names in GROUPS:
        folder = (base + paths.get(controller, "/")).rstrip("/")
        while folder.startswith(base):
            limit, used = (_read(f"{folder}/{name}").strip() for name in names[:2])
            if limit.isdigit() and used.isdigit():
                # The kernel first frees pages of files that were not used recently.
                statistics = _read(f"{folder}/memory.stat")
                freeable = re.findall(rf"^{names[2]} (\d+)$", statistics, re.MULTILINE)
                yield int(limit), int(limit) - int(used) + sum(map(int, freeable))
            folder = os.path.dirname(folder)


def used_bytes(pid: int) -> int:
    """Return the resident and swapped bytes of a process and its children; 0 if it has ended."""
    return sum(map(_process_bytes, {pid, *_session_processes(pid)}))


def _process_bytes(pid: int) -> int:
    kilobytes = re.findall(
        r"^(?:VmRSS|VmSwap):\s+(\d+) kB$", _read(f"/proc/{pid}/status"), re.MULTILINE
    )
    return sum(map(int, kilobytes)) * 1024


def _session_processes(leader: int) -> Iterator[int]:
    """Yield the processes of the operating-system session that a process leads.

    Its children stay in the session, unless they lead another one.
    """
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):  # it has ended meanwhile
            if os.getsid(pid) == leader:
                yield pid


def count_gpus() -> int:
    """Return the number of NVIDIA devices of this machine."""
    return sum(1 for device in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", device))


def parallel_trainers() -> int:
    """Return the number of trainers to run concurrently: one per core and 2 GB, at least 2."""
    return max(2, min(count_cores(), memory_bytes() // 2 // TRAINER_BYTES))


def _read_meminfo(field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB", _read("/proc/meminfo"), re.MULTILINE)
    return int(match.group(1)) * 1024 if match else TRAINER_BYTES


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
