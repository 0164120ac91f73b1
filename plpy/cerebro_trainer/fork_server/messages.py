"""What nursery and backends say to each other: a packet of JSON each."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

MOST_BYTES = 1 << 16


def send(connection: socket.socket, words: Mapping[str, int]) -> None:
    """To whoever is there."""
    with suppress(OSError):  # it has gone
        connection.send(json.dumps(words).encode())


def receive(connection: socket.socket) -> Mapping[str, Any] | None:
    """The next words; None where the other end says no more."""
    text = received(connection)
    return words(text) if text else None


def received(connection: socket.socket) -> bytes:
    """The next packet as it is; empty where no more comes."""
    with suppress(OSError):
        return connection.recv(MOST_BYTES)
    return b""


def words(text: bytes) -> dict[str, Any]:
    """What a packet says; nothing where it is none of these."""
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}
