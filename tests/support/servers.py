"""What the fixtures `server` and `database` hand to a test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cerebro_db import provision


@dataclass(frozen=True, kw_only=True)
class Server:
    """The tests' server: the folder of its socket, its port."""

    socket: Path
    port: int

    def url(self, database: str, role: str = provision.ROLE) -> str:
        return provision.url(self.socket, self.port, role, database)


@dataclass(frozen=True, kw_only=True)
class Database:
    """A database with the extension; `url` is for the ordinary role."""

    name: str
    url: str
    superuser_url: str
