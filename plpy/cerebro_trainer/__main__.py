"""Starts a trainer: `python -I -m cerebro_trainer --fd N --parent PID --framework F --threads T …`.

The order matters. First the process ties its life to its parent's, then it makes itself the first choice of
the kernel's memory killer, shuts itself off from other processes, and only then it loads a framework, which takes a
second and much memory.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.metadata
import os
import platform
import re
import resource
import signal
import socket
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import TracebackType

from cerebro_trainer.commands.trainer import Trainer
from cerebro_trainer.programs.protocol import Framework
from cerebro_trainer.wire.frames import BrokenFrame, Connection, Message, PeerGone
from cerebro_trainer.wire.pulse import Pulse
from cerebro_trainer.wire.read_ahead import Ahead

PROTOCOL = 1
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
FRAMEWORKS = {
    "tensorflow": "cerebro_trainer.programs.tensorflow_program",
    "jax": "cerebro_trainer.programs.jax_program",
}
NOT_NEEDED = {
    "tensorflow": ("jax", "sklearn", "scipy", "pandas", "matplotlib"),
    "jax": ("tensorflow", "sklearn", "pandas", "matplotlib"),
}
"""Keras and TensorFlow import these where they find them, for wrappers, plots and conversions: a second and 95 MB of
no use here."""


def main() -> None:
    """Serve until the backend goes. Its folder goes with it, by a process of the backend's."""
    arguments = _arguments()
    _follow_parent(arguments.parent)
    Path("/proc/self/oom_score_adj").write_text("1000")
    keep_private()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.excepthook = _end_at_once
    connection = Connection(socket.socket(fileno=arguments.fd))
    pulse = Pulse(arguments.pulse)
    try:
        framework = _framework(arguments)
        ahead = Ahead(connection)
        # While a GPU computes, the processor may wait for long.
        if framework is None or all(device.startswith("CPU") for device in framework.devices):
            pulse.follow(lambda: ahead.taken)
        connection.send(Message({"ok": _hello(framework, arguments.threads)}))
        Trainer(connection, ahead, framework).serve()
    except PeerGone:
        status = 0
    except BrokenFrame as error:
        print(f"cerebro_trainer: {error}", file=sys.stderr, flush=True)
        status = 1
    # A framework takes a second to take itself apart, and there is nothing left to save.
    os._exit(status)


def _end_at_once(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """After an error of our own: the thread that waits for the peer would keep the process alive until it goes."""
    sys.__excepthook__(kind, error, trace)
    sys.stderr.flush()
    os._exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("cerebro_trainer", description="The training process of cerebro_db.")
    parser.add_argument("--fd", type=int, required=True, help="the connected socket, an inherited descriptor")
    parser.add_argument("--pulse", type=int, required=True, help="shared memory for signs of life, likewise")
    parser.add_argument("--parent", type=int, required=True, help="process id of the backend that started this")
    parser.add_argument("--framework", choices=("none", *FRAMEWORKS), required=True)
    parser.add_argument("--threads", type=int, required=True, help="threads that one operation may use")
    parser.add_argument("--compilation-cache", type=Path, help="a private folder for compiled code")
    return parser.parse_args()


def _follow_parent(parent: int) -> None:
    """Die with the parent. Asked for first and compared second: it may have died in between.

    By exit status 1, not by the signal: where the server is process 1, as in containers, it inherits orphans, and one
    that a signal ended looks to it like a crashed backend. The C library's own function is the handler, so that it
    needs no turn of the interpreter, which a framework may keep for long; the signal's number is the status.
    """
    libc = ctypes.CDLL(None)
    libc.signal(signal.SIGHUP, ctypes.cast(libc["_exit"], ctypes.c_void_p))
    _prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
    if os.getppid() != parent:
        sys.exit(f"cerebro_trainer: the parent is process {os.getppid()}, expected {parent}")


def keep_private() -> None:
    """Training data stay in this process: no core file, no debugger of the same user, no program with more rights.

    It gives up the right to write files of its own in /proc, so this comes after what is written there.
    """
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        sys.exit(f"cerebro_trainer: prctl {option} failed: {os.strerror(ctypes.get_errno())}")


def _framework(arguments: argparse.Namespace) -> Framework | None:
    name = arguments.framework
    if name == "none":
        return None
    os.environ["KERAS_BACKEND"] = name
    sys.meta_path.insert(0, _NotNeeded(NOT_NEEDED[name]))
    try:
        module = importlib.import_module(FRAMEWORKS[name])
    except ModuleNotFoundError as error:
        sys.exit(f"cerebro_trainer: {error}; in a clone of cerebro_db: {sys.executable} -m pip install '.[{name}]'")
    started: Framework = module.start(arguments.threads, arguments.compilation_cache)
    return started


class _NotNeeded(MetaPathFinder):
    """Lets modules look as if they were not installed. An entry None in sys.modules would look imported to Keras."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"{fullname} is not needed here", name=fullname)


def _hello(framework: Framework | None, threads: int) -> dict[str, object]:
    return {
        "protocol": PROTOCOL,
        "version": _version(),
        "pid": os.getpid(),
        "framework": framework.name if framework else "none",
        "framework_version": framework.version if framework else None,
        "keras_version": framework.keras_version if framework else None,
        "python_version": platform.python_version(),
        "devices": framework.devices if framework else (),
        "threads": threads,
        "machine": _machine(framework),
    }


def _machine(framework: Framework | None) -> str:
    """All that speed depends on beside the program, so that timings are remembered for what they were taken on."""
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    hardware = f"{len(os.sched_getaffinity(0))} x {models[0].strip() if models else platform.machine()}"
    if framework is None:
        return hardware
    software = f"{framework.name} {framework.version}, Keras {framework.keras_version}"
    return f"{hardware}, {', '.join(framework.devices)}, {software}"


def _version() -> str | None:
    try:
        return importlib.metadata.version("cerebro_db")
    except importlib.metadata.PackageNotFoundError:
        return None  # run from a source tree; the backend compares versions and says so


if __name__ == "__main__":
    main()
