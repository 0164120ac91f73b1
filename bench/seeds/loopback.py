"""Bytes over the loopback interface of a network of one's own, as `unshare --net` makes it: nobody
else's are there.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path

SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
"""Of linux/sockios.h and linux/if.h."""
HOST = "127.0.0.1"
FIRST_PORT = 20_000
"""In a network of one's own all ports are free."""


def opened() -> None:
    """Let this process' network have a loopback interface that works; needs the rights of its
    owner.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def sent() -> int:
    """Bytes that were sent over it; each of them was received over it, too, and is counted once."""
    return counted(Path("/proc/self/net/dev").read_text())


def counted(text: str) -> int:
    """The bytes that /proc/net/dev says were sent over the loopback interface (proc(5)).

    >>> counted("face |bytes\\n    lo:  70 1 0 0 0 0 0 0  64 1 0 0 0 0 0 0")
    64
    """
    (line,) = (line for line in text.splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])
