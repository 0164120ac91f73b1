"""Measure the time, CPU time and memory of all processes that take part in a piece of work.

The processes are descendants of given ones, and are sampled. Many of them (a server's backends,
their trainers, Ray's workers) are not children of the process that waits for the work. A process
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
"""Time between two samples of a trainer's CPU time, short enough to separate visits."""
MEMORY_SECONDS = 0.6  # the kernel adds up a process' pages for each reading
MAX_SHARE = 0.01  # of a core, so that measuring does not delay the work
TICKS = os.sysconf("SC_CLK_TCK")
SERVED = re.compile(r"cerebro_(?:trainer|keeper): .* (?:backend|server) (\d+)")
"""Title of a process that works for another one than its parent, which may be a fork server."""
TRAINERS = "trainers"
BACKENDS = "backends"
SERVER = "rest of the server"
CLIENT = "client"
OURS = re.compile(r"\((cerebro_|postgres)")
TITLES = (
    (re.compile(r"cerebro_trainer: "), TRAINERS),
    (re.compile(r"postgres: (\S+: )?(\S+ \S+ (\[local\]|\S+\(\d+\))|parallel worker)"), BACKENDS),
    (re.compile(r"cerebro_|postgres: |\S*postgres\0"), SERVER),
)
"""Roles of processes, by the start of their titles; a process without such a title is a client."""

CpuHistory = tuple[list[float], list[float]]
"""Times in seconds since the epoch, and the CPU seconds that a process had used by then."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The time, CPU time and memory that a piece of work took."""

    wall: float  # seconds
    cpu: float  # CPU seconds of all processes
    memory: int  # largest sum of memory in bytes; shared pages count once (PSS)
    trainer: int  # largest resident memory of a trainer that was started meanwhile, or 0
    cpu_of: Mapping[str, float] = field(default_factory=dict)  # CPU seconds by role
    # The CPU histories of trainers, by the pid of their backend.
    histories: Mapping[int, Sequence[CpuHistory]] = field(default_factory=dict)


@dataclass(frozen=True)
class Process:
    """A process as /proc shows it."""

    pid: int
    start: int  # clock ticks since boot; distinguishes it from a later process with its pid
    parent: int  # the process that it works for
    cpu: float
    role: str = CLIENT


class Watch:
    """A context manager that samples the descendants of `roots` in a thread of its own."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = set(roots)
        self._first: dict[tuple[int, int], float] = {}
        self._last: dict[tuple[int, int], Process] = {}
        self._histories: dict[tuple[int, int, int], CpuHistory] = {}
        """By the pid of the backend, and the pid and start of the trainer."""
        self._sampled = 0.0
        self._peak = self._trainer = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def add(self, root: int) -> None:
        """Count another process and its descendants from their start."""
        self._roots.add(root)

    def __enter__(self) -> Watch:
        # What these processes used before does not count.
        self._first = {(process.pid, process.start): process.cpu for process in self._family()}
        self._sampled = time.time()
        self._began = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._began
        self._stop.set()
        self._thread.join()

    def usage(self) -> Usage:
        """Return the sums, after the block has ended."""
        cpu_of: dict[str, float] = {}
        for identity, last in self._last.items():
            cpu_of[last.role] = (
                cpu_of.get(last.role, 0.0) + last.cpu - self._first.get(identity, 0.0)
            )
        histories: dict[int, list[CpuHistory]] = {}
        for (backend, _, _), history in self._histories.items():
            histories.setdefault(backend, []).append(history)
        return Usage(
            wall=self.wall,
            cpu=sum(cpu_of.values()),
            memory=self._peak,
            trainer=self._trainer,
            cpu_of=cpu_of,
            histories=histories,
        )

    def _run(self) -> None:
        processes = memory = time.monotonic() + PAUSE_SECONDS
        pause = CLOSE_SECONDS
        while not self._stop.wait(pause):
            if time.monotonic() >= memory:
                memory = time.monotonic() + _run_and_pause(self._sample_memory, MEMORY_SECONDS)
            elif time.monotonic() >= processes:
                processes = time.monotonic() + _run_and_pause(self._sample, PAUSE_SECONDS)
            else:
                pause = _run_and_pause(self._sample_trainers, CLOSE_SECONDS)
        self._sample()

    def _sample(self) -> None:
        now = time.time()
        family = self._family()
        for process in family:
            if process.role == TRAINERS:
                self._extend_history(process, now)
            self._last[process.pid, process.start] = self._keep_role(process)
        self._sampled = now

    def _keep_role(self, process: Process) -> Process:
        """Return a process with its previous role if it has lost its title at its end."""
        previous = self._last.get((process.pid, process.start))
        return (
            replace(process, role=previous.role) if previous and process.role == CLIENT else process
        )

    def _sample_memory(self) -> None:
        family = self._family()
        self._peak = max(self._peak, sum(measure_memory(process.pid) for process in family))
        new_pids = [
            process.pid for process in family if (process.pid, process.start) not in self._first
        ]
        self._trainer = max([self._trainer, *map(measure_trainer_peak, new_pids)])

    def _extend_history(self, process: Process, now: float) -> None:
        """Extend the history of a trainer.

        If the trainer is new to its backend, its history begins at its start or the last sample.
        """
        identity = (process.pid, process.start)
        history = self._histories.get((process.parent, *identity))
        if history is None:
            previous = self._last.get(identity)
            used = previous.cpu if previous else self._first.get(identity, 0.0)
            history = self._histories[process.parent, *identity] = (
                [max(self._sampled, find_start(process))],
                [used],
            )
        history[0].append(now)
        history[1].append(process.cpu)

    def _sample_trainers(self) -> None:
        """Sample the known trainers and backends often, so that their last CPU time is counted."""
        for identity, previous in self._last.items():
            if previous.role not in (TRAINERS, BACKENDS):
                continue
            now = time.time()
            process = _read_process(identity[0])
            if (
                process is not None
                and process.start == identity[1]
                and process.role == previous.role
            ):
                if process.role == TRAINERS:
                    self._extend_history(process, now)
                self._last[identity] = process

    def _family(self) -> list[Process]:
        return find_descendants(list_processes(), self._roots)


def _run_and_pause(work: Callable[[], None], least: float) -> float:
    """Do some work; return the seconds to wait before it is repeated."""
    began = time.thread_time()
    work()
    return max(least, (time.thread_time() - began) / MAX_SHARE)


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The result of a command."""

    usage: Usage
    status: int | None  # exit status; None if the command was stopped at its time limit
    output: str


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    servers: Iterable[int],
    limit: float | None,
    folder: Path | None = None,
) -> CommandResult:
    """Run a command for at most `limit` seconds, counting the servers that work for it."""
    with (
        Watch(servers) as watch,
        subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as child,
    ):
        watch.add(child.pid)
        status = None
        output = ""
        try:
            output, _ = child.communicate(timeout=limit)
            status = child.returncode
        except subprocess.TimeoutExpired:
            pass
        finally:
            if child.poll() is None:  # the time limit was reached, or the user stops the benchmark
                _kill(find_descendants(list_processes(), [child.pid]))
    return CommandResult(usage=watch.usage(), status=status, output=output)


def _kill(family: Iterable[Process]) -> None:
    for process in family:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def list_processes() -> list[Process]:
    """Return all processes of this machine that can be read."""
    family = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (process := _read_process(int(entry.name))) is not None:
            family.append(process)
    return family


def find_descendants(processes: Iterable[Process], roots: Iterable[int]) -> list[Process]:
    """Return the processes that are one of `roots` or descend from one."""
    by_pid = {process.pid: process for process in processes}
    children: dict[int, list[int]] = {}
    for process in by_pid.values():
        children.setdefault(process.parent, []).append(process.pid)
    family: dict[int, Process] = {}
    pending = [pid for pid in roots if pid in by_pid]
    while pending:
        pid = pending.pop()
        if pid not in family:
            family[pid] = by_pid[pid]
            pending.extend(children.get(pid, ()))
    return list(family.values())


def measure_memory(pid: int) -> int:
    """Return a process's memory, with its part of shared pages; 0 if it has ended."""
    return _sum_kilobytes(_read_file(pid, "smaps_rollup"), "Pss:")


def measure_private_memory(pid: int) -> int:
    """Return a process's memory without shared pages; 0 if it cannot be read."""
    return _sum_kilobytes(_read_file(pid, "smaps_rollup"), "Private_")


def measure_trainer_peak(pid: int) -> int:
    """Return the peak memory of a trainer; 0 if the process is not a trainer."""
    if not _read_file(pid, "cmdline").startswith("cerebro_trainer: "):
        return 0
    return _sum_kilobytes(_read_file(pid, "status"), "VmHWM:")


def find_start(process: Process) -> float:
    """Return the start of a process in seconds since the epoch."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + process.start / TICKS


def find_role(title: str) -> str:
    """Return the role of a process with a title."""
    return next((role for begin, role in TITLES if begin.match(title)), CLIENT)


def _sum_kilobytes(text: str, name: str) -> int:
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(name))


def _read_file(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return ""


def _read_process(pid: int) -> Process | None:
    text = _read_file(pid, "stat")
    if not text:
        return None
    # The name, in brackets, may hold anything; what follows it has a fixed order (proc(5)).
    fields = text[text.rindex(")") + 2 :].split()
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    title = _read_file(pid, "cmdline") if OURS.search(text) else ""
    served = SERVED.match(title)
    return Process(
        pid=pid,
        start=int(fields[19]),
        parent=int(served[1] if served else fields[1]),
        cpu=cpu,
        role=find_role(title),
    )
