"""Patience of a nursery: the time without backends and trainers after which it ends."""

from __future__ import annotations

import socket

from cerebro_trainer.fork_server.server import Nursery, Post


def test_a_nursery_waits_its_seconds_for_nobody_and_for_ever_while_a_backend_is_connected() -> None:
    with socket.socket() as listener, socket.socket() as connection:
        nursery = Nursery(listener, "none")
        assert nursery._patience(60.0) == 60_000.0
        nursery._posts[connection.fileno()] = Post(connection)
        assert nursery._patience(60.0) is None
