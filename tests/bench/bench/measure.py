"""What a piece of work takes, counted over all processes that take part: time, CPU time, memory.

Processes are found as descendants of given ones and sampled, because many of them (a server's backends, their
trainers, Ray's workers) are not children of whoever waits for the work. A process that lives less than the time
between two samples is missed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAUSE_SECONDS = 0.2
MEMORY_EVERY = 3  # samples: the kernel adds up a process' pages for each reading
LARGEST_SHARE = 0.01  # of a core: what is measured must not wait for the measuring
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Seconds by the clock, CPU seconds of all processes together, the highest sum of their memory in bytes,
    shared pages counted once (PSS), and the highest resident memory of a trainer of ours (0 without one)."""

    wall: float
    cpu: float
    memory: int
    trainer: int


@dataclass(frozen=True)
class Seen:
    """A process as /proc shows it; `started` tells it from a later one with its number."""

    pid: int
    started: int
    parent: int
    cpu: float


class Watch:
    """Samples the descendants of `roots` in a thread of its own, from entering the block to leaving it."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = set(roots)
        self._first: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], float] = {}
        self._peak = self._trainer = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def add(self, root: int) -> None:
        """Count another process, and its descendants, from its beginning."""
        self._roots.add(root)

    def __enter__(self) -> Watch:
        # What these processes used before does not count.
        self._first = {(seen.pid, seen.started): seen.cpu for seen in self._family()}
        self._began = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._began
        self._done.set()
        self._thread.join()

    def usage(self) -> Usage:
        """The sums, once the block is left."""
        cpu = sum(last - self._first.get(process, 0.0) for process, last in self._last.items())
        return Usage(wall=self.wall, cpu=cpu, memory=self._peak, trainer=self._trainer)

    def _run(self) -> None:
        count, pause = 0, PAUSE_SECONDS
        while not self._done.wait(pause):
            began = time.thread_time()
            self._sample(memory=count % MEMORY_EVERY == 0)
            count += 1
            pause = max(PAUSE_SECONDS, (time.thread_time() - began) / LARGEST_SHARE)
        self._sample(memory=False)

    def _sample(self, memory: bool) -> None:
        family = self._family()
        self._last.update({(seen.pid, seen.started): seen.cpu for seen in family})
        if memory:
            self._peak = max(self._peak, sum(proportional_bytes(seen.pid) for seen in family))
            self._trainer = max([self._trainer, *(trainer_peak_bytes(seen.pid) for seen in family)])

    def _family(self) -> list[Seen]:
        return descendants(everything(), self._roots)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended: its exit status, None where it was stopped because its time was over."""

    usage: Usage
    status: int | None
    output: str


def run(command: Sequence[str], environment: Mapping[str, str], servers: Iterable[int], limit: float | None) -> Ended:
    """Run a command for at most `limit` seconds, counting the servers that work for it."""
    with (
        Watch(servers) as watch,
        subprocess.Popen(
            command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        watch.add(process.pid)
        status, output = None, ""
        try:
            output, _ = process.communicate(timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:  # its time was over, or somebody wants to stop
                _kill(descendants(everything(), [process.pid]))
    return Ended(usage=watch.usage(), status=status, output=output)


def _kill(family: Iterable[Seen]) -> None:
    for seen in family:
        with suppress(ProcessLookupError):
            os.kill(seen.pid, signal.SIGKILL)


def everything() -> list[Seen]:
    """All processes of this machine that can be read."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (seen := _read(int(entry.name))) is not None:
            found.append(seen)
    return found


def descendants(processes: Iterable[Seen], roots: Iterable[int]) -> list[Seen]:
    """Those of `processes` that are one of `roots` or come from one."""
    by_pid = {seen.pid: seen for seen in processes}
    children: dict[int, list[int]] = {}
    for seen in by_pid.values():
        children.setdefault(seen.parent, []).append(seen.pid)
    found: dict[int, Seen] = {}
    ahead = [pid for pid in roots if pid in by_pid]
    while ahead:
        pid = ahead.pop()
        if pid not in found:
            found[pid] = by_pid[pid]
            ahead.extend(children.get(pid, ()))
    return list(found.values())


def proportional_bytes(pid: int) -> int:
    """A process' memory, pages shared with others counted in part; 0 when it is gone."""
    return _kilobytes(_text(pid, "smaps_rollup"), "Pss:")


def trainer_peak_bytes(pid: int) -> int:
    """The most memory that a trainer has had in its life; 0 where the process is none."""
    return _kilobytes(_text(pid, "status"), "VmHWM:") if "cerebro_trainer" in _text(pid, "cmdline") else 0


def _kilobytes(text: str, name: str) -> int:
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(name))


def _text(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return ""


def _read(pid: int) -> Seen | None:
    text = _text(pid, "stat")
    if not text:
        return None
    # The name, in brackets, may hold anything; what follows it has a fixed order (proc(5)).
    fields = text[text.rindex(")") + 2 :].split()
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    return Seen(pid=pid, started=int(fields[19]), parent=int(fields[1]), cpu=cpu)
