"""What runs on this machine for a test's database, and waiting for it to change."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

LONGEST_WAIT = 300.0
PAUSE = 0.02

NAME = re.compile(r"cerebro_trainer: \w+ for backend (\d+)")

CHOSEN_SLICES = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 12)
"""Whether this kernel heeds which slices of time a thread asks for."""
GETATTR = {"x86_64": 315, "aarch64": 275}
"""The number of sched_getattr(2)."""

T = TypeVar("T")


def eventually(question: Callable[[], T]) -> T:
    """The first answer that is true; fails after five minutes, which is no statement about
    speed.
    """
    deadline = time.monotonic() + LONGEST_WAIT
    while not (answer := question()):
        assert time.monotonic() < deadline, f"still {answer!r} after {LONGEST_WAIT:.0f} s"
        time.sleep(PAUSE)
    return answer


def trainers(parents: set[int]) -> set[int]:
    """Processes that say that they are trainers of these backends."""
    return {pid for pid in processes() if backend_of(command_line(pid)) in parents}


def backend_of(words: list[str]) -> int | None:
    """Whose trainer a process is, by its title, or by the command line of one that has just
    begun.
    """
    if named := NAME.fullmatch(words[0] if words else ""):
        return int(named[1])
    return int(words[words.index("--parent") + 1]) if "cerebro_trainer" in words else None


def command_line(pid: int) -> list[str]:
    """The words of a process' command line; none when it is gone, or dead and not yet buried."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def descendants(pid: int) -> set[int]:
    """A process, its children, and theirs."""
    found = {pid}
    while True:
        more = {child for child in processes() if parent(child) in found} - found
        if not more:
            return found
        found |= more


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def most_memory(pid: int) -> int:
    """The most address space that a process has had, in bytes: what it has of the server's is there
    from the start.
    """
    found = re.search(
        r"^VmPeak:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
    )
    assert found
    return int(found[1]) * 1024


def cores_of(pid: int) -> set[int]:
    """The processors on which any of its threads may be."""
    return set().union(
        *(os.sched_getaffinity(int(thread)) for thread in os.listdir(f"/proc/{pid}/task"))
    )


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def alive(pids: set[int]) -> set[int]:
    """Those that still run; one that is dead and not yet buried does not."""
    return {pid for pid in pids if command_line(pid) not in ([], [""])}


def idle(pids: set[int]) -> bool:
    """Return whether the main threads of these processes did not run between two looks."""
    before = [_processor_times(pid) for pid in pids]
    time.sleep(PAUSE)
    return before == [_processor_times(pid) for pid in pids]


def _processor_times(pid: int) -> str:
    return Path(f"/proc/{pid}/schedstat").read_text()


def slice_of(thread: int) -> int:
    """Nanoseconds that the kernel gives a thread at a time."""
    found = ctypes.create_string_buffer(48)
    assert ctypes.CDLL(None).syscall(GETATTR[os.uname().machine], thread, found, len(found), 0) == 0
    return int(struct.unpack("=IIQiIQQQ", found.raw)[5])
