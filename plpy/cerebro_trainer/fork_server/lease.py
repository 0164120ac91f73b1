"""A forked trainer's backends, one after another: what it has of each, and how it hears of the
next.
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
"""Those that come with a request: socket, pulse, what keeps the folder, and where messages go."""
TAKEN = b"taken"
NOWHERE = "/"
"""Where a process is that has no folder."""


class Tenant(NamedTuple):
    """What a backend asks for, and the descriptors that it gives."""

    request: Mapping[str, Any]
    descriptors: list[int]


def request(text: bytes) -> dict[str, Any] | None:
    """What a backend asks for; None where it asks for nothing that is understood here."""
    words = messages.words(text)
    right = {"parent", "home", "threads", "cache", "memory", "key"} <= words.keys()
    return words if right and isinstance(words["key"], (str, NoneType)) else None


def stand_alone(tenant: Tenant, mail: socket.socket, nursery: int) -> None:
    """In the order of `cerebro_trainer.__main__`, with what an execution would have brought
    besides.
    """
    os.setsid()
    process_isolation.follow_parent(nursery)
    _close_all_but({0, 1, 2, mail.fileno(), *tenant.descriptors})
    random.seed()
    np.random.seed()
    process_isolation.prefer_for_memory_killer()
    process_isolation.lower_cpu_priority(use_thread=True)
    process_isolation.keep_private()


def move_in(tenant: Tenant, framework: str) -> Assignment:
    """Be the trainer of a backend: by name, in its folder, and with what it has given alone."""
    words, (connection, pulse, _, messages) = tenant
    os.dup2(messages, 1)
    os.dup2(messages, 2)
    os.close(messages)
    process_isolation.set_trainer_title(framework, int(words["parent"]))
    move_to(words["home"])
    cache = Path(words["cache"]) if words["cache"] else None
    return Assignment(
        connection, pulse, framework, int(words["threads"]), cache, int(words["memory"])
    )


def later(tenant: Tenant, framework: str, mail: socket.socket) -> Iterator[Assignment]:
    """Those that come by mail, each after the one before has gone, whose folder goes then."""
    while True:
        _move_out(tenant, framework)
        text, received, _, _ = socket.recv_fds(mail, messages.MOST_BYTES, DESCRIPTORS)
        words = request(text)
        if words is None:
            return  # the nursery has gone
        tenant = Tenant(words, received)
        assignment = move_in(tenant, framework)
        mail.send(TAKEN)
        yield assignment


def move_to(folder: str) -> None:
    """Work there, and keep there what libraries keep in a home or among temporary files."""
    os.chdir(folder)
    os.environ.update(dict.fromkeys(HOME_VARIABLES, folder))
    tempfile.tempdir = None


def _close_all_but(kept: set[int]) -> None:
    """Whoever holds a copy of a socket hides its end, and keeps its address."""
    for descriptor in set(map(int, os.listdir("/proc/self/fd"))) - kept:
        with suppress(OSError):  # the folder that was listed is closed already
            os.close(descriptor)


def _move_out(tenant: Tenant, framework: str) -> None:
    process_isolation.set_trainer_title(framework, None)
    move_to(NOWHERE)
    _, pulse, folder, _ = tenant.descriptors
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    for each in (nothing, pulse, folder):
        os.close(each)
