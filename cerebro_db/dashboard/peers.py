"""The operating-system user at the other end of a connection on this machine, as Linux lists it."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from starlette.types import Scope

SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Lists of all sockets; a program may also reach an IPv4 address by an IPv6 socket."""
ESTABLISHED = "01"
"""State of a connection that is open; the owner of a closed one is no longer listed."""


def peer_user(scope: Scope) -> int | None:
    """Return the user id of the process that sent a request; None if the system does not list
    it.
    """
    client, server = scope.get("client"), scope.get("server")
    if not client or not server:
        return None
    for path in SOCKETS:
        try:
            lines = path.read_text().splitlines()[1:]
            user = find_user(lines, tuple(client), tuple(server))
        except (OSError, ValueError):
            continue
        if user is not None:
            return user
    return None


def find_user(lines: list[str], client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the owner of the open socket from `client` to `server` in lines of /proc/net/tcp.

    >>> line = ("2: 0100007F:B26E 0100007F:1F90 01 00000000:00000000 00:00000000 00000000"
    ...         "  1000        0 5 1 0 20 4")
    >>> find_user([line], ("127.0.0.1", 45678), ("127.0.0.1", 8080))
    1000
    """
    pairs = {(_write(client, mapped), _write(server, mapped)) for mapped in (False, True)}
    for line in lines:
        _, local, remote, state, _, _, _, user, *_ = line.split()
        if (local, remote) in pairs and state == ESTABLISHED:
            return int(user)
    return None


def _write(address: tuple[str, int], mapped: bool) -> str:
    """Return an IPv4 address and port as the lists write them: 32-bit words of this machine in
    hexadecimal.
    """
    host, port = address
    packed = socket.inet_aton(host)
    if mapped:
        packed = bytes(10) + b"\xff\xff" + packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
