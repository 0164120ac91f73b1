"""A trainer from its first sign of life to its end, however its process came to be: executed, or
forked.
"""

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
from cerebro_trainer.commands.program_cache import Workshop
from cerebro_trainer.commands.trainer import Trainer
from cerebro_trainer.programs.program import Framework
from cerebro_trainer.wire.frames import BrokenFrame, Connection, Message, PeerGone
from cerebro_trainer.wire.heartbeat import Pulse
from cerebro_trainer.wire.prefetch import Ahead

PROTOCOL = 1


@dataclass(frozen=True)
class Assignment:
    """What a trainer is to be: its ends of the socket pair and of the pulse, as descriptors, and
    how it computes.

    Above so many bytes of `memory` its backend ends it; 0 is no limit.
    """

    socket: int
    pulse: int
    framework: str
    threads: int
    cache: Path | None
    memory: int


def serve(assignment: Assignment, later: Iterable[Assignment] = ()) -> None:
    """Serve until the backend goes, then `later` ones, and end the process. Folders are removed by
    the backends'.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.excepthook = _end_at_once
    pulse = Pulse(assignment.pulse)
    try:
        framework = frameworks.start(assignment.framework, assignment.threads, assignment.cache)
        workshop = Workshop(framework, assignment.memory) if framework else None
        hello = _hello(framework, assignment.threads)
        for each in chain((assignment,), later):
            pulse.move(each.pulse)
            compilations = workshop.compilations if workshop else []
            greeting = Message({"ok": {**hello, "compilations": compilations}})
            _attend(Connection(socket.socket(fileno=each.socket)), pulse, workshop, greeting)
            if workshop:
                workshop.wipe()
        status = 0
    except PeerGone:
        status = 0
    except BrokenFrame as error:
        print(f"cerebro_trainer: {error}", file=sys.stderr, flush=True)
        status = 1
    # A framework takes a second to take itself apart, and there is nothing left to save.
    os._exit(status)


def _attend(
    connection: Connection, pulse: Pulse, workshop: Workshop | None, hello: Message
) -> None:
    """Serve one backend until it goes."""
    ahead = Ahead(connection)
    # While a GPU computes, the processor may wait for long.
    if workshop is None or all(device.startswith("CPU") for device in workshop.framework.devices):
        pulse.follow(lambda: ahead.taken)
    connection.send(hello)
    Trainer(connection, ahead, workshop).serve()
    connection.close()
    ahead.close()


def _end_at_once(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """After an error of our own: the thread that waits for the peer would keep the process alive
    until it goes.
    """
    sys.__excepthook__(kind, error, trace)
    sys.stderr.flush()
    os._exit(1)


def _hello(framework: Framework | None, threads: int) -> dict[str, object]:
    return {
        "protocol": PROTOCOL,
        "version": _version(),
        "pid": os.getpid(),
        "framework": framework.name if framework else frameworks.NONE,
        "framework_version": framework.version if framework else None,
        "keras_version": framework.keras_version if framework else None,
        "python_version": platform.python_version(),
        "devices": framework.devices if framework else (),
        "threads": threads,
        "machine": _machine(framework),
    }


def _machine(framework: Framework | None) -> str:
    """All that speed depends on beside the program, so that timings are remembered for what they
    were taken on.
    """
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    hardware = f"{os.cpu_count()} x {models[0].strip() if models else platform.machine()}"
    if framework is None:
        return hardware
    software = f"{framework.name} {framework.version}, Keras {framework.keras_version}"
    return f"{hardware}, {', '.join(framework.devices)}, {software}"


def _version() -> str | None:
    try:
        return importlib.metadata.version("cerebro_db")
    except importlib.metadata.PackageNotFoundError:
        return None  # run from a source tree; the backend compares versions and says so
