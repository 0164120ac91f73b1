"""Messages between the fork server and backends: one packet of JSON each."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

MAX_BYTES = 1 << 16


def send(connection: socket.socket, message: Mapping[str, int]) -> None:
    """Send a message; ignore a closed connection."""
    with suppress(OSError):
        connection.send(json.dumps(message).encode())


def receive(connection: socket.socket) -> Mapping[str, Any] | None:
    """Return the next message; None if the connection is closed."""
    packet = receive_packet(connection)
    return parse(packet) if packet else None


def receive_packet(connection: socket.socket) -> bytes:
    """Return the next packet; an empty one if the connection is closed."""
    with suppress(OSError):
        return connection.recv(MAX_BYTES)
    return b""


def parse(packet: bytes) -> dict[str, Any]:
    """Return the JSON object in a packet; an empty one if the packet contains something else."""
    with suppress(ValueError):
        message = json.loads(packet)
        if isinstance(message, dict):
            return message
    return {}
