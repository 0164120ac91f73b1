"""Count the bytes on the loopback interface of a private network, made by `unshare --net`."""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path

# Constants of linux/sockios.h and linux/if.h.
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
HOST = "127.0.0.1"
FIRST_PORT = 20_000
"""All ports of a private network are free."""


def enable() -> None:
    """Enable the loopback interface of this process's network, with the rights of its owner."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def count_sent_bytes() -> int:
    """Return the bytes sent over the interface; their reception is not counted again."""
    return parse_sent_bytes(Path("/proc/self/net/dev").read_text())


def parse_sent_bytes(text: str) -> int:
    """Return the bytes sent over the loopback interface, from /proc/net/dev (proc(5)).

    >>> parse_sent_bytes("face |bytes\\n    lo:  70 1 0 0 0 0 0 0  64 1 0 0 0 0 0 0")
    64
    """
    (line,) = (line for line in text.splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])
