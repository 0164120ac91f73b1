"""What the fixtures `server` and `database` hand to a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cerebro_db.server import provision

# The URL of a database of a server for a role.
Address = Callable[[str, str], str]


@dataclass(frozen=True, kw_only=True)
class Server:
    """The tests' server: the folder of its socket, its port."""

    socket: Path
    port: int

    def url(self, database: str, role: str = provision.ROLE) -> str:
        return provision.make_url(self.socket, self.port, role, database)


@dataclass(frozen=True, kw_only=True)
class Database:
    """A database with the extension; `url` is for the ordinary role."""

    name: str
    url: str
    superuser_url: str


def started(data: Path) -> str:
    """The URL of an embedded server that has been started in this folder."""
    command = [sys.executable, "-I", "-m", "cerebro_db", "server", "start", "--data", str(data)]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd="/"
    ).stdout.splitlines()[-1]
