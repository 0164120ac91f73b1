"""The lease of a forked trainer: the request and the descriptors of the backend that uses it.

A trainer serves one backend after another. It receives a lease as a message, and releases
everything that belongs to it when the backend has gone.
"""

from __future__ import annotations

import os
import random
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from cerebro_trainer import process_isolation
from cerebro_trainer.fork_server import messages
from cerebro_trainer.frameworks import HOME_VARIABLES
from cerebro_trainer.service import Assignment

DESCRIPTORS = 4
"""Descriptors of a request: the socket, the heartbeat page, the lock of the folder, the log."""
REQUIRED_FIELDS = frozenset({"parent", "home", "threads", "cache", "memory", "key"})
ACCEPTED = b"taken"
NO_HOME = "/"
"""Working directory of a process without a folder."""


class Lease(NamedTuple):
    """The request of a backend."""

    request: Mapping[str, Any]
    descriptors: list[int]


def parse_request(packet: bytes) -> dict[str, Any] | None:
    """Return the request of a backend; None if the packet is not a valid one."""
    request = messages.parse(packet)
    if not request.keys() >= REQUIRED_FIELDS or not isinstance(request["key"], (str, NoneType)):
        return None
    return request


def isolate_process(lease: Lease, mailbox: socket.socket, fork_server: int) -> None:
    """Do for a forked process what an execution would have done.

    The order is that of `cerebro_trainer.__main__`.

    Args:
        fork_server: process id of the fork server.
    """
    os.setsid()
    process_isolation.follow_parent(fork_server)
    _close_descriptors(excluded={0, 1, 2, mailbox.fileno(), *lease.descriptors})
    random.seed()
    np.random.seed()
    process_isolation.prefer_for_memory_killer()
    process_isolation.lower_cpu_priority(use_thread=True)
    process_isolation.keep_private()


def begin_lease(lease: Lease, framework: str) -> Assignment:
    """Take over the title, the folder and the descriptors of a lease."""
    connection, heartbeat, _, log = lease.descriptors
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    request = lease.request
    process_isolation.set_trainer_title(framework, int(request["parent"]))
    change_home(request["home"])
    return Assignment(
        socket=connection,
        heartbeat=heartbeat,
        framework=framework,
        threads=int(request["threads"]),
        cache=Path(request["cache"]) if request["cache"] else None,
        memory=int(request["memory"]),
    )


def receive_leases(lease: Lease, framework: str, mailbox: socket.socket) -> Iterator[Assignment]:
    """Yield the assignments that follow a lease; each request for one ends the lease before it."""
    while True:
        _end_lease(lease, framework)
        packet, descriptors, _, _ = socket.recv_fds(mailbox, messages.MAX_BYTES, DESCRIPTORS)
        request = parse_request(packet)
        if request is None:
            return  # the fork server has ended
        lease = Lease(request, descriptors)
        assignment = begin_lease(lease, framework)
        mailbox.send(ACCEPTED)
        yield assignment


def change_home(folder: str) -> None:
    """Make a folder the working directory, and that of home directories and temporary files."""
    os.chdir(folder)
    os.environ.update(dict.fromkeys(HOME_VARIABLES, folder))
    tempfile.tempdir = None  # makes the module read TMPDIR again


def _close_descriptors(excluded: set[int]) -> None:
    """Close inherited descriptors: a copy of a socket would hide that its other end is closed."""
    for descriptor in set(map(int, os.listdir("/proc/self/fd"))) - excluded:
        with suppress(OSError):  # the descriptor of the listed folder is already closed
            os.close(descriptor)


def _end_lease(lease: Lease, framework: str) -> None:
    process_isolation.set_trainer_title(framework, None)
    change_home(NO_HOME)
    _, heartbeat, folder_lock, _ = lease.descriptors
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, 1)
    os.dup2(null_device, 2)
    for descriptor in (null_device, heartbeat, folder_lock):
        os.close(descriptor)
