"""What a piece of work takes, counted over all processes that take part: time, CPU time, memory.

Processes are found as descendants of given ones and sampled, because many of them (a server's
backends, their trainers, Ray's workers) are not children of whoever waits for the work. A process
that lives less than the time between two samples is missed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

PAUSE_SECONDS = 0.2
CLOSE_SECONDS = 0.02
"""Between two looks at the CPU time of a trainer: a visit is to be told from what surrounds it."""
MEMORY_SECONDS = 0.6  # the kernel adds up a process' pages for each reading
LARGEST_SHARE = 0.01  # of a core: what is measured must not wait for the measuring
TICKS = os.sysconf("SC_CLK_TCK")
SERVED = re.compile(r"cerebro_(?:trainer|keeper): .* (?:backend|server) (\d+)")
"""For whom a process works whose parent is a nursery, or who keeps one."""
TRAINERS, BACKENDS, SERVER, CLIENT = "trainers", "backends", "rest of the server", "client"
OURS = re.compile(r"\((cerebro_|postgres)")
TITLES = (
    (re.compile(r"cerebro_trainer: "), TRAINERS),
    (re.compile(r"postgres: (\S+: )?(\S+ \S+ (\[local\]|\S+\(\d+\))|parallel worker)"), BACKENDS),
    (re.compile(r"cerebro_|postgres: |\S*postgres\0"), SERVER),
)
"""What processes are for, by how their titles begin; whoever has no such title belongs to who calls
the server.
"""

Course = tuple[list[float], list[float]]
"""Times, in seconds since the epoch, and what CPU time a process had used by then."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Seconds by the clock, CPU seconds of all processes together, the highest sum of their memory
    in bytes, shared pages counted once (PSS), and the highest resident memory of a trainer of ours
    that began meanwhile (0 without one).

    CPU seconds are told by what processes are for, too; and those of trainers in their course, by
    their backends.
    """

    wall: float
    cpu: float
    memory: int
    trainer: int
    cpu_of: Mapping[str, float] = field(default_factory=dict)
    courses: Mapping[int, Sequence[Course]] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A process as /proc shows it; `started` tells it from a later one with its number.

    Its `parent` is whom it works for, where its title says so, and `role` what it is for.
    """

    pid: int
    started: int
    parent: int
    cpu: float
    role: str = CLIENT


class Watch:
    """Samples the descendants of `roots` in a thread of its own, from entering the block to leaving
    it.
    """

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = set(roots)
        self._first: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], Seen] = {}
        self._courses: dict[tuple[int, int, int], Course] = {}
        """By backend, and by its trainer's number and start."""
        self._sampled = 0.0
        self._peak = self._trainer = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def add(self, root: int) -> None:
        """Count another process, and its descendants, from its beginning."""
        self._roots.add(root)

    def __enter__(self) -> Watch:
        # What these processes used before does not count.
        self._first = {(seen.pid, seen.started): seen.cpu for seen in self._family()}
        self._sampled = time.time()
        self._began = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._began
        self._done.set()
        self._thread.join()

    def usage(self) -> Usage:
        """The sums, once the block is left."""
        cpu_of: dict[str, float] = {}
        for process, last in self._last.items():
            cpu_of[last.role] = (
                cpu_of.get(last.role, 0.0) + last.cpu - self._first.get(process, 0.0)
            )
        courses: dict[int, list[Course]] = {}
        for (backend, _, _), course in self._courses.items():
            courses.setdefault(backend, []).append(course)
        return Usage(
            wall=self.wall,
            cpu=sum(cpu_of.values()),
            memory=self._peak,
            trainer=self._trainer,
            cpu_of=cpu_of,
            courses=courses,
        )

    def _run(self) -> None:
        processes = memory = time.monotonic() + PAUSE_SECONDS
        pause = CLOSE_SECONDS
        while not self._done.wait(pause):
            if time.monotonic() >= memory:
                memory = time.monotonic() + _pause(self._sample_memory, MEMORY_SECONDS)
            elif time.monotonic() >= processes:
                processes = time.monotonic() + _pause(self._sample, PAUSE_SECONDS)
            else:
                pause = _pause(self._follow, CLOSE_SECONDS)
        self._sample()

    def _sample(self) -> None:
        now, family = time.time(), self._family()
        for seen in family:
            if seen.role == TRAINERS:
                self._note(seen, now)
            self._last[seen.pid, seen.started] = self._known(seen)
        self._sampled = now

    def _known(self, seen: Seen) -> Seen:
        """A process that ends has no title any more, but what it was for before."""
        before = self._last.get((seen.pid, seen.started))
        return replace(seen, role=before.role) if before and seen.role == CLIENT else seen

    def _sample_memory(self) -> None:
        family = self._family()
        self._peak = max(self._peak, sum(proportional_bytes(seen.pid) for seen in family))
        begun = [seen.pid for seen in family if (seen.pid, seen.started) not in self._first]
        self._trainer = max([self._trainer, *map(trainer_peak_bytes, begun)])

    def _note(self, seen: Seen, now: float) -> None:
        """Go on with the course of a trainer; where it is new to its backend, from its start or the
        last sample on.
        """
        process = (seen.pid, seen.started)
        course = self._courses.get((seen.parent, *process))
        if course is None:
            before = self._last.get(process)
            used = before.cpu if before else self._first.get(process, 0.0)
            course = self._courses[seen.parent, *process] = (
                [max(self._sampled, began_at(seen))],
                [used],
            )
        course[0].append(now)
        course[1].append(seen.cpu)

    def _follow(self) -> None:
        """Look at the trainers and backends that are known: what they use at last must not be
        missed.
        """
        for process, before in self._last.items():
            if before.role not in (TRAINERS, BACKENDS):
                continue
            now, seen = time.time(), _read(process[0])
            if seen is not None and seen.started == process[1] and seen.role == before.role:
                if seen.role == TRAINERS:
                    self._note(seen, now)
                self._last[process] = seen

    def _family(self) -> list[Seen]:
        return descendants(everything(), self._roots)


def _pause(work: Callable[[], None], least: float) -> float:
    """Do it; how long to wait then before it is done again."""
    began = time.thread_time()
    work()
    return max(least, (time.thread_time() - began) / LARGEST_SHARE)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended: its exit status, None where it was stopped because its time was over."""

    usage: Usage
    status: int | None
    output: str


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    servers: Iterable[int],
    limit: float | None,
) -> Ended:
    """Run a command for at most `limit` seconds, counting the servers that work for it."""
    with (
        Watch(servers) as watch,
        subprocess.Popen(
            command,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
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


def own_bytes(pid: int) -> int:
    """A process' memory that it shares with no other; 0 where this cannot be read."""
    return _kilobytes(_text(pid, "smaps_rollup"), "Private_")


def trainer_peak_bytes(pid: int) -> int:
    """The most memory that a trainer has had in its life; 0 where the process is none."""
    return (
        _kilobytes(_text(pid, "status"), "VmHWM:")
        if _text(pid, "cmdline").startswith("cerebro_trainer: ")
        else 0
    )


def began_at(seen: Seen) -> float:
    """When a process began, in seconds since the epoch."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + seen.started / TICKS


def role(title: str) -> str:
    """What a process of this title is for."""
    return next((role for begin, role in TITLES if begin.match(title)), CLIENT)


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
    title = _text(pid, "cmdline") if OURS.search(text) else ""
    served = SERVED.match(title)
    return Seen(
        pid=pid,
        started=int(fields[19]),
        parent=int(served[1] if served else fields[1]),
        cpu=cpu,
        role=role(title),
    )
