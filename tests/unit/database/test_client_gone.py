"""The caller's client is told from all other open files of a process, and no file is left open by
looking.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from cerebro_plpy.database.sessions.client_connection import (
    find_client_socket,
    has_hung_up,
    replace_client,
)

PORT = 54329


def test_the_accepted_connection_is_found_and_its_end_is_noticed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / f".s.PGSQL.{PORT}"))
        listener.listen()
        client.connect(listener.getsockname())
        served, _ = listener.accept()
        with served:
            opened = os.listdir("/proc/self/fd")
            assert find_client_socket(PORT) == served.fileno()
            assert find_client_socket(PORT + 1) is None
            assert os.listdir("/proc/self/fd") == opened
            assert not has_hung_up(served.fileno())
            client.close()
            assert has_hung_up(served.fileno())


def test_a_connection_over_tcp_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            served, _ = listener.accept()
            with served:
                assert find_client_socket(port) == served.fileno()


def test_a_client_that_is_left_takes_all_and_says_goodbye(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / f".s.PGSQL.{PORT}"))
        listener.listen()
        client.connect(listener.getsockname())
        served, _ = listener.accept()
        with served:
            served.sendall(b"first")
            replace_client(PORT + 1)  # no such client
            assert not has_hung_up(client.fileno())
            replace_client(PORT)
            assert client.recv(100) == b"first"
            assert client.recv(100) == b""
            client.close()
            for _ in range(10):
                served.sendall(b"more")
            assert not os.get_blocking(served.fileno())
            assert served.recv(100) == b"X\0\0\0\4"
            with pytest.raises(BlockingIOError):
                served.recv(100)
