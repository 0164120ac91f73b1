"""The time without backends and trainers after which a fork server ends."""

from __future__ import annotations

import socket

from cerebro_trainer.fork_server.server import Client, ForkServer


def test_a_fork_server_waits_its_seconds_without_clients_and_forever_with_one() -> None:
    with socket.socket() as listener, socket.socket() as connection:
        fork_server = ForkServer(listener, "none")
        assert fork_server._poll_timeout(60.0) == 60_000.0
        fork_server._clients[connection.fileno()] = Client(connection)
        assert fork_server._poll_timeout(60.0) is None
