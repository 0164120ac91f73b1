"""The reaper: the parent of a fork server, which survives it and collects its orphans.

In containers the server is process 1. It inherits orphans, takes one that died from a signal for a
crashed backend, and then ends all sessions. The fork server and its trainers, which may end in any
way, are therefore descendants of the reaper. The reaper depends on no library that may fail, and
exits with status 0 or 1 even after signals. Its process is titled "cerebro_keeper".
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

EXIT_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
)


def run(server: int, listener: socket.socket, run_fork_server: Callable[[], None]) -> NoReturn:
    """Run a fork server until it or the database server ends, then wait for all descendants.

    Args:
        server: process id of the database server.
    """
    for number in EXIT_SIGNALS:
        signal.signal(number, lambda *_: os._exit(1))
    process_isolation.adopt_orphans()
    try:
        server_pidfd = os.pidfd_open(server)
    except OSError as error:  # the server has ended, or the kernel has no pidfds
        sys.exit(f"cerebro_trainer: process {server} cannot be watched: {error.strerror}")
    fork_server = _fork(run_fork_server)
    setproctitle(f"cerebro_keeper: nursery {fork_server} for server {server}")
    listener.close()
    os.chdir("/")
    _reap_descendants(fork_server, server_pidfd)
    os._exit(0)


def _fork(run_fork_server: Callable[[], None]) -> int:
    reaper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        for number in EXIT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        process_isolation.follow_parent(reaper)
        run_fork_server()
    finally:
        os._exit(1)


def _reap_descendants(fork_server: int, server_pidfd: int) -> None:
    """Wait until no descendant is left.

    Kill the fork server when the database server has ended, and the trainers when the fork server
    has.
    """
    wakeup_reader, wakeup_writer = os.pipe()
    os.set_blocking(wakeup_reader, False)
    os.set_blocking(wakeup_writer, False)
    signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(wakeup_reader, select.POLLIN)
    poll.register(server_pidfd, select.POLLIN)
    while _reap_children():
        if not _is_child(fork_server):
            _kill_children()
        for descriptor, _ in poll.poll():
            if descriptor == server_pidfd:
                poll.unregister(server_pidfd)
                with suppress(ProcessLookupError):
                    os.kill(fork_server, signal.SIGKILL)
            else:
                os.read(wakeup_reader, 4096)


def _reap_children() -> bool:
    """Collect the children that have ended; return whether other children exist."""
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
    """Kill the adopted processes: a stopped trainer does not notice the end of its fork server."""
    reaper = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and _find_parent(name) == reaper:
            with suppress(ProcessLookupError):
                os.kill(int(name), signal.SIGKILL)


def _find_parent(process: str) -> int | None:
    """Return the process id of a process' parent; None if the process has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None
