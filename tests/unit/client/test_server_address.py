"""Which server `cerebro-db setup` takes: the one that listens, or the one that is named."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cerebro_db.errors import InvalidParameter, ObjectNotReady
from cerebro_db.setup.server_address import find_server


@pytest.fixture
def two_servers(tmp_path: Path) -> Iterator[Path]:
    with ExitStack() as stack:
        for port in (5432, 5433):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(tmp_path / f".s.PGSQL.{port}"))
            server.listen()
        left = stack.enter_context(socket.socket(socket.AF_UNIX))
        left.bind(str(tmp_path / ".s.PGSQL.5434"))  # what a crash leaves: nobody listens
        (tmp_path / ".s.PGSQL.5432.lock").touch()
        yield tmp_path


def test_of_two_servers_one_is_named(two_servers: Path) -> None:
    with pytest.raises(InvalidParameter, match="on the ports 5432, 5433"):
        find_server(two_servers, None)
    assert find_server(two_servers, 5433).port == 5433


@pytest.mark.parametrize("port", [5434, 5435])
def test_a_socket_without_a_server_is_refused(two_servers: Path, port: int) -> None:
    with pytest.raises(ObjectNotReady, match=f"on port {port}"):
        find_server(two_servers, port)
