"""The outermost process of a nursery, which buries all others and never ends by a signal that can
be caught.

Where a server is process 1, as in containers, orphans come to it, and one that a signal ended looks
to it like a crashed backend, after which it ends all sessions. So the nursery and its trainers,
whose end may be any, are orphans of this process, which holds no library that could fail it and
ends with exit status 0 or 1.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from setproctitle import setproctitle

from cerebro_trainer import process_isolation

ENDINGS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
)


def keep(server: int, listener: socket.socket, nursery: Callable[[], None]) -> NoReturn:
    """Run a nursery until it ends or the server does, then wait for what is left of it."""
    for number in ENDINGS:
        signal.signal(number, lambda *_: os._exit(1))
    process_isolation.adopt_orphans()
    try:
        watched = os.pidfd_open(server)
    except OSError as error:  # it has ended, or the kernel cannot tell
        sys.exit(f"cerebro_trainer: process {server} cannot be watched: {error.strerror}")
    child = _forked(nursery)
    setproctitle(f"cerebro_keeper: nursery {child} for server {server}")
    listener.close()
    os.chdir("/")
    _bury(child, watched)
    os._exit(0)


def _forked(nursery: Callable[[], None]) -> int:
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        for number in ENDINGS:
            signal.signal(number, signal.SIG_DFL)
        process_isolation.follow_parent(keeper)
        nursery()
    finally:
        os._exit(1)


def _bury(nursery: int, server: int) -> None:
    """Wait until no process is left. Kill the nursery when the server has ended, and the trainers
    after the nursery.
    """
    ours, signals = os.pipe()
    os.set_blocking(ours, False)
    os.set_blocking(signals, False)
    signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    poll.register(server, select.POLLIN)
    while _left():
        if not _is_child(nursery):
            _kill_children()
        for descriptor, _ in poll.poll():
            if descriptor == server:
                poll.unregister(server)
                with suppress(ProcessLookupError):
                    os.kill(nursery, signal.SIGKILL)
            else:
                os.read(ours, 4096)


def _left() -> bool:
    """Bury those that have ended; whether there are others."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _is_child(process: int) -> bool:
    try:
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _kill_children() -> None:
    """Kill the processes that this one has adopted: a trainer that is stopped does not heed the end
    of its nursery.
    """
    keeper = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and _parent(name) == keeper:
            with suppress(ProcessLookupError):
                os.kill(int(name), signal.SIGKILL)


def _parent(process: str) -> int | None:
    """Return the process id of a process' parent; None if the process has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None
