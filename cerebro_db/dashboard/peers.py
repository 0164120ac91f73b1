"""Find the operating-system user at the other end of a connection on this machine, on Linux."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from starlette.types import Scope

SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Lists of all sockets; a program may also reach an IPv4 address through an IPv6 socket."""
ESTABLISHED = "01"
"""State of an open connection; the owner of a closed one is no longer listed."""


def find_peer_user(scope: Scope) -> int | None:
    """Return the user id of the process that sent a request; None if Linux does not list it."""
    client = scope.get("client")
    server = scope.get("server")
    if not client or not server:
        return None
    for path in SOCKETS:
        try:
            lines = path.read_text().splitlines()[1:]
            user = find_socket_owner(lines, tuple(client), tuple(server))
        except (OSError, ValueError):
            continue
        if user is not None:
            return user
    return None


def find_socket_owner(
    lines: list[str], client: tuple[str, int], server: tuple[str, int]
) -> int | None:
    """Return the owner of the open socket from `client` to `server` in lines of /proc/net/tcp.

    >>> line = ("2: 0100007F:B26E 0100007F:1F90 01 00000000:00000000 00:00000000 00000000"
    ...         "  1000        0 5 1 0 20 4")
    >>> find_socket_owner([line], ("127.0.0.1", 45678), ("127.0.0.1", 8080))
    1000
    """
    pairs = {
        (_format_address(client, mapped), _format_address(server, mapped))
        for mapped in (False, True)
    }
    for line in lines:
        _, local, remote, state, _, _, _, user, *_ = line.split()
        if (local, remote) in pairs and state == ESTABLISHED:
            return int(user)
    return None


def _format_address(address: tuple[str, int], mapped: bool) -> str:
    """Return an IPv4 address and port in the format of the lists, hexadecimal words of 32 bits.

    Args:
        mapped: map the address to IPv6.
    """
    host, port = address
    packed = socket.inet_aton(host)
    if mapped:
        packed = bytes(10) + b"\xff\xff" + packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
