"""Requests of trainers from a fork server, which is started if there is none.

`cerebro_trainer.fork_server` is the other end. A fork server belongs to one start of a database
server, and to one framework in the current state of its environment: any change results in another
address. In case of doubt a trainer is executed instead, which takes seconds longer; for instance if
the fork server does not answer because it was stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from glob import escape, glob

from cerebro_plpy.records import asdict
from cerebro_plpy.trainer_client.process.cpu_clock import START_FIELD, read_stat
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.trainer_process import (
    ForkedTrainer,
    ForkRequest,
    StartingServer,
    read_peer,
)

CONNECT_SECONDS = 1.0
# Addresses of fork servers that failed a trainer of this backend: none is started there again.
_excluded: set[str] = set()


def fork(
    spec: TrainerSpec, home: str, descriptors: Sequence[int], roles: str | None = None
) -> ForkedTrainer | None:
    """Return a trainer from a fork server, or None if it must be executed.

    A trainer with a GPU is always executed.

    Args:
        home: the trainer's folder.
        descriptors: its socket, its heartbeat, the pipe of its folder, and its output.
        roles: identifies sessions of the same caller, whose idle trainers may be reused; None
            disables reuse.
    """
    if not spec.nursery_seconds or spec.uses_gpu:
        return None
    with suppress(OSError):
        address = server_address(spec)
        if address in _excluded:
            return None
        server = _connect(address)
        fields = {
            "parent": os.getpid(),
            "home": home,
            "threads": spec.threads,
            "cache": spec.compilation_cache,
            "memory": spec.memory_bytes,
            "key": roles and json.dumps([roles, asdict(spec)]),
        }
        request = ForkRequest(json.dumps(fields).encode(), descriptors)
        if server is not None:
            return ForkedTrainer(server, request)
        starting = StartingServer(_start(spec, address), partial(_connect, address))
        return ForkedTrainer(starting, request)
    return None


def exclude(spec: TrainerSpec) -> None:
    """Request no further trainer from this fork server."""
    with suppress(OSError):
        _excluded.add(server_address(spec))


def server_address(spec: TrainerSpec) -> str:
    """Return the address of a fork server in the abstract namespace.

    It contains a digest of everything that its trainers depend on.
    """
    server = os.getppid()
    parts = [
        str(os.getuid()),
        spec.python,
        spec.framework,
        str(server),
        read_stat(server)[START_FIELD],
        *_installation_times(spec.python),
        *map(str, spec.cores),
    ]
    return f"cerebro_nursery-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"


def _installation_times(python: str) -> list[str]:
    """Return when an interpreter and its packages were last changed."""
    prefix = escape(os.path.dirname(os.path.dirname(python)))
    folders = sorted(glob(os.path.join(prefix, "lib/python3*/*-packages")))
    return [f"{path} {os.stat(path).st_mtime_ns}" for path in (python, *folders)]


def _connect(address: str) -> socket.socket | None:
    """Return a connection to a process of the server's own user that listens at an address."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(CONNECT_SECONDS)  # connecting blocks while the backlog is full
    try:
        connection.connect(f"\0{address}")
    except OSError as error:
        connection.close()
        if isinstance(error, ConnectionRefusedError):
            return None
        raise
    if read_peer(connection).user != os.getuid():
        connection.close()
        return None
    connection.setblocking(False)
    return connection


def _start(spec: TrainerSpec, address: str) -> subprocess.Popen[bytes]:
    """Start a fork server.

    It listens when the returned process has ended, and imports its framework afterwards.
    """
    command = [spec.python, "-I", "-m", "cerebro_trainer.fork_server"]
    command += ["--address", address, "--server", str(os.getppid())]
    command += ["--framework", spec.framework, "--seconds", str(spec.nursery_seconds)]
    command += ["--cores", *map(str, spec.cores)]
    return subprocess.Popen(
        command,
        env=spec.environment("/nonexistent"),
        cwd="/",
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
