"""The life of a trainer process, which was either executed or forked."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import signal
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType

from cerebro_trainer import frameworks
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.commands.trainer import Trainer
from cerebro_trainer.programs.program import Framework
from cerebro_trainer.wire.frames import BrokenFrame, Connection, Message, PeerGone, Reply
from cerebro_trainer.wire.heartbeat import Heartbeat
from cerebro_trainer.wire.prefetch import Prefetcher

PROTOCOL = 1


@dataclass(frozen=True)
class Assignment:
    """A backend that a trainer serves, and the trainer's settings."""

    socket: int  # descriptor of the trainer's end of the socket pair
    heartbeat: int  # descriptor of the shared page for the heartbeat
    framework: str
    threads: int
    cache: Path | None  # folder for compiled code
    memory: int  # bytes above which the backend ends the trainer; 0 for no limit


def serve(assignment: Assignment, later_assignments: Iterable[Assignment] = ()) -> None:
    """Serve one backend after another, each until it goes, and end the process.

    The backends remove the folders.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.excepthook = _exit_after_error
    heartbeat = Heartbeat(assignment.heartbeat)
    try:
        framework = frameworks.start(assignment.framework, assignment.threads, assignment.cache)
        programs = ProgramCache(framework, assignment.memory) if framework else None
        hello = _describe_trainer(framework, assignment.threads)
        for current in chain((assignment,), later_assignments):
            heartbeat.redirect(current.heartbeat)
            compilations = programs.compilations if programs else []
            greeting = Message({"ok": {**hello, "compilations": compilations}})
            connection = Connection(socket.socket(fileno=current.socket))
            _serve_backend(connection, heartbeat, programs, greeting)
            if programs:
                programs.clear_session_data()
        status = 0
    except PeerGone:
        status = 0
    except BrokenFrame as error:
        print(f"cerebro_trainer: {error}", file=sys.stderr, flush=True)
        status = 1
    # An orderly exit of a framework takes a second, and there is nothing left to save.
    os._exit(status)


def _serve_backend(
    connection: Connection, heartbeat: Heartbeat, programs: ProgramCache | None, greeting: Message
) -> None:
    """Serve one backend until it goes."""
    prefetcher = Prefetcher(connection)
    if programs is None or _runs_on_cpu(programs.framework):
        heartbeat.watch(lambda: prefetcher.is_request_active)
    connection.send(greeting)
    Trainer(connection, prefetcher, programs).serve()
    connection.close()
    prefetcher.close()


def _runs_on_cpu(framework: Framework) -> bool:
    """Return whether idle CPU time means a standstill; with a GPU, the CPU may wait for long."""
    return all(device.startswith("CPU") for device in framework.devices)


def _exit_after_error(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Report an error of the trainer itself, and exit at once.

    Otherwise the thread that waits for the backend would keep the process alive.
    """
    sys.__excepthook__(kind, error, trace)
    sys.stderr.flush()
    os._exit(1)


def _describe_trainer(framework: Framework | None, threads: int) -> Reply:
    """Return the fields of the first message to the backend, except for `compilations`."""
    software: Reply = {
        "framework": frameworks.NONE,
        "framework_version": None,
        "keras_version": None,
        "devices": (),
    }
    if framework is not None:
        software = {
            "framework": framework.name,
            "framework_version": framework.version,
            "keras_version": framework.keras_version,
            "devices": framework.devices,
        }
    return {
        "protocol": PROTOCOL,
        "version": _find_version(),
        "pid": os.getpid(),
        **software,
        "python_version": platform.python_version(),
        "threads": threads,
        "machine": _describe_machine(framework),
    }


def _describe_machine(framework: Framework | None) -> str:
    """Return a key for timings: everything but the program that speed depends on."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    models = re.findall(r"^model name\s*: (.*)$", cpuinfo, re.MULTILINE)
    processor = next(iter(models), platform.machine()).strip()
    hardware = f"{os.cpu_count()} x {processor}"
    if framework is None:
        return hardware
    software = f"{framework.name} {framework.version}, Keras {framework.keras_version}"
    return f"{hardware}, {', '.join(framework.devices)}, {software}"


def _find_version() -> str | None:
    """Return the release of the package, without the suffix of a development release."""
    try:
        return importlib.metadata.version("cerebro_db").partition(".dev")[0]
    except importlib.metadata.PackageNotFoundError:
        return None  # run from a source tree; the backend reports the difference
