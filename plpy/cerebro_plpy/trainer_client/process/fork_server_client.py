"""Asks a nursery for trainers, and starts one where there is none: `cerebro_trainer.fork_server` is
the other end.

A nursery belongs to one start of one server, and to one framework of one environment as it is now:
whatever changes leads to another address. Wherever anything is doubtful, a trainer is executed
instead, which takes seconds longer: also where the nursery was stopped, and so does not answer.
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
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.trainer_process import Forked, Request, Starting, peer

CONNECT_SECONDS = 1.0
_barren: set[str] = set()
"""Addresses whose nurseries failed a trainer of this backend: none is started there again."""


def fork(
    spec: TrainerSpec, home: str, descriptors: Sequence[int], who: str | None = None
) -> Forked | None:
    """A trainer with these descriptors (its socket, its pulse, what keeps its folder, and where its
    messages go).

    It may be one that another session of the same caller (`who`) has left, and be left to such a
    one; None: to nobody. None where it has to be executed: no nursery is wanted or can be had, or
    it is to use a GPU.
    """
    if not spec.nursery_seconds or spec.on_gpu:
        return None
    with suppress(OSError):
        where = address(spec)
        if where in _barren:
            return None
        nursery = _connected(where) or Starting(_start(spec, where), partial(_connected, where))
        cache = spec.compilation_cache
        key = None if who is None else json.dumps([who, asdict(spec)])
        words = {"parent": os.getpid(), "home": home, "threads": spec.threads, "cache": cache}
        words |= {"memory": spec.memory_bytes, "key": key}
        return Forked(nursery, Request(json.dumps(words).encode(), descriptors))
    return None


def give_up(spec: TrainerSpec) -> None:
    """Ask this nursery for no trainer any more."""
    with suppress(OSError):
        _barren.add(address(spec))


def address(spec: TrainerSpec) -> str:
    """Where it listens, in the abstract namespace: who differs in anything that its trainers depend
    on has another.
    """
    server = os.getppid()
    parts = [
        str(os.getuid()),
        spec.python,
        spec.framework,
        str(server),
        _started_at(server),
        *_installed(spec.python),
    ]
    parts += map(str, spec.cores)
    return f"cerebro_nursery-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"


def _started_at(process: int) -> str:
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[19]


def _installed(python: str) -> list[str]:
    """When anything was last installed for an interpreter, and when the interpreter itself was."""
    folders = sorted(
        glob(
            os.path.join(
                escape(os.path.dirname(os.path.dirname(python))), "lib/python3*/*-packages"
            )
        )
    )
    return [f"{path} {os.stat(path).st_mtime_ns}" for path in (python, *folders)]


def _connected(where: str) -> socket.socket | None:
    """A connection to who listens there, if it is a process of the server's own user."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(CONNECT_SECONDS)  # as many wait as may
    try:
        connection.connect(f"\0{where}")
    except OSError as error:
        connection.close()
        if isinstance(error, ConnectionRefusedError):
            return None
        raise
    if peer(connection).user != os.getuid():
        connection.close()
        return None
    connection.setblocking(False)
    return connection


def _start(spec: TrainerSpec, where: str) -> subprocess.Popen[bytes]:
    """Start a nursery; it listens when this process has ended, and imports its framework then."""
    command = [
        spec.python,
        "-I",
        "-m",
        "cerebro_trainer.fork_server",
        "--address",
        where,
        "--server",
        str(os.getppid()),
    ]
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
