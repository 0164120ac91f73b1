"""The server to set up: its socket, its system user, and sessions over that socket."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from cerebro_db.driver import parse_url, translate_errors
from cerebro_db.errors import CerebroError, InvalidParameter, ObjectNotReady
from cerebro_db.nouns import count_nouns
from cerebro_db.server.provision import make_url
from cerebro_db.setup.system_user import act_as

FOLDER = Path("/var/run/postgresql")
PREFIX = ".s.PGSQL."
CONNECT_SECONDS = 10
MAINTENANCE = "postgres"  # the database that every server has


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """A server that listens on a Unix socket."""

    folder: Path
    port: int
    user: pwd.struct_passwd  # the server's system user, who is a superuser of the same name

    @contextmanager
    def connect(self, database: str = MAINTENANCE) -> Iterator[sa.Connection]:
        """Open a session of the superuser in which every statement commits."""
        with self.log_in(self.user, database, self.user.pw_name) as connection:
            yield connection

    @contextmanager
    def log_in(self, peer: pwd.struct_passwd, database: str, role: str) -> Iterator[sa.Connection]:
        """Open a session of a role as the system user `peer`, whom the server sees at its start."""
        url = parse_url(make_url(self.folder, self.port, "_", "_"))
        url = url.set(username=role, database=database)
        url = url.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)})
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        # In a statement without parameters, % is not a placeholder.
        engine = engine.execution_options(no_parameters=True)
        with translate_errors():
            with act_as(peer):
                connection = engine.connect()
            with connection:
                yield connection

    def try_login(self, peer: pwd.struct_passwd, database: str, role: str) -> str | None:
        """Return why the system user `peer` cannot log in as the role; None if it can."""
        try:
            with self.log_in(peer, database, role):
                return None
        except CerebroError as error:
            return error.message

    def can_log_in(self, peer: pwd.struct_passwd, database: str, role: str) -> bool:
        """Return whether the system user `peer` can log in as the role."""
        return self.try_login(peer, database, role) is None

    def url(self, database: str, role: str) -> str:
        """Return the URL of a database for a role."""
        url = parse_url(make_url(self.folder, self.port, "_", "_"))
        url = url.set(username=role, database=database)
        return url.render_as_string(hide_password=False)


def find_server(folder: Path | None, port: int | None) -> ServerAddress:
    """Return the address of the server that listens in the folder.

    Args:
        folder: folder of the socket; None for the system's. Anybody may have made a socket in /tmp,
            so it is not searched.
        port: part of the socket's name; None for the only one in the folder.

    Raises:
        ObjectNotReady: no server listens there.
        InvalidParameter: several servers listen there, and `port` is missing.
    """
    place = folder or FOLDER
    ports = _list_ports(place) if port is None else [port]
    if len(ports) > 1:
        raise InvalidParameter(
            f"{count_nouns(len(ports), 'server', 'listens')} in {place}: on the ports "
            f"{', '.join(map(str, ports))}",
            hint=f"Choose one, such as --port {ports[0]}.",
        )
    if not ports or not _listens(place / f"{PREFIX}{ports[0]}"):
        raise ObjectNotReady(
            f"no server listens in {place}" + (f" on port {port}" if port else ""),
            hint="Start it, or name the folder of its socket: --host FOLDER.",
        )
    owner = (place / f"{PREFIX}{ports[0]}").stat().st_uid
    return ServerAddress(folder=place, port=ports[0], user=pwd.getpwuid(owner))


def find_stopped_cluster() -> tuple[str, str] | None:
    """Return version and name of Debian's cluster, if it is the only one and does not run."""
    if os.geteuid() != 0 or shutil.which("pg_lsclusters") is None:
        return None
    command = ["pg_lsclusters", "--no-header"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    if len(lines) != 1:
        return None
    version, name, _, status = lines[0].split()[:4]
    return (version, name) if status.startswith("down") else None


def start_cluster(version: str, name: str) -> None:
    """Start a cluster of Debian, by systemd if that runs, and wait until it accepts sessions."""
    command = ["pg_ctlcluster", version, name, "start"]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode not in (0, 2):  # 2: it runs
        raise ObjectNotReady(
            f"the server did not start: {result.stderr.strip()}",
            hint=f"See /var/log/postgresql/postgresql-{version}-{name}.log.",
        )


def _list_ports(folder: Path) -> list[int]:
    numbers = [path.name.removeprefix(PREFIX) for path in folder.glob(f"{PREFIX}*")]
    ports = sorted(int(number) for number in numbers if number.isdigit())
    return [port for port in ports if _listens(folder / f"{PREFIX}{port}")]


def _listens(path: Path) -> bool:
    """Return whether a server listens on the socket; one that crashed leaves its socket behind."""
    if not path.exists() or not stat.S_ISSOCK(path.stat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True
