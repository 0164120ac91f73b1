"""The embedded server: a private PostgreSQL next to the virtual environment, for trials and tests.

The server needs neither root nor a password nor a free TCP port. It changes nothing outside its own
folder:

    cluster/         the database cluster
    tree/            PostgreSQL's binaries and extension folder, see installation.py
    python/          packages that backends import; the server's PYTHONPATH
    run/             the socket
    compiled/        the trainers' compilation cache
    postgresql.log
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cerebro_db.errors import InsufficientPrivilege, InvalidParameter, ObjectNotReady
from cerebro_db.server import deployment, installation, provision, run_as
from cerebro_db.server.cluster import PORT, Cluster, RunningServer

LOG = "postgresql.log"
MAX_SOCKET_BYTES = 107  # longest path of a Unix socket that the kernel supports


@dataclass(frozen=True, kw_only=True)
class Status:
    """Status of a server."""

    url: str | None  # None if the server does not run
    pid: int | None  # the same
    data: Path
    log: Path


class EmbeddedServer:
    """An embedded server, whose start and stop can be repeated and interrupted.

    If root calls these methods, they run as another system user, because PostgreSQL does not run as
    root.

    Args:
        data: folder of the server.
        port: part of the socket's name.
        report: receives messages for the user.
    """

    def __init__(
        self, data: Path | None = None, port: int = PORT, report: Callable[[str], None] = print
    ) -> None:
        self.data = (data or choose_folder()).resolve()
        forbidden = sorted(set('"$`\\\n') & set(str(self.data)))
        if forbidden:
            raise InvalidParameter(
                f"a server cannot lie in a folder with {forbidden[0]!r} in its path: {self.data}",
                detail="PostgreSQL's own programs hand their path to a shell.",
                hint="Choose another folder with --data.",
            )
        self.port = port
        self.report = report
        self.log = self.data / LOG

    def start(self) -> str:
        """Create missing files, start the server unless it runs, and return its URL."""
        if os.geteuid() == 0:
            run_as.prepare_folder(self.data)
            arguments = ["server", "start", "--data", str(self.data), "--port", str(self.port)]
            arguments.append("--no-remember")  # the file would be that user's
            return run_as.run_command(self.data, arguments, self.report).splitlines()[-1]
        with _lock(self.data):
            deployment.read_build()  # raises an error before the server starts
            server = self._make_cluster().find_server()
            if server is None:
                server = self._start()
            elif server.port != self.port:
                self.report(f"it runs on port {server.port} already; stop it first to change that")
            self._provision(server)
            return provision.make_url(server.socket, server.port)

    def stop(self) -> bool:
        """Stop the server; return False if it did not run."""
        if self.status().pid is None:
            return False
        if os.geteuid() == 0:
            return run_as.call_as_owner(self.data, _stop)
        return _stop(self.data)

    def status(self) -> Status:
        """Return whether the server runs, and the paths of its files."""
        server = self._make_cluster().find_server()
        if server is None:
            return Status(url=None, pid=None, data=self.data, log=self.log)
        url = provision.make_url(server.socket, server.port)
        return Status(url=url, pid=server.pid, data=self.data, log=self.log)

    def _make_cluster(self, bindir: Path = Path()) -> Cluster:
        return _find_cluster(self.data, bindir)

    def _start(self) -> RunningServer:
        version_file = self.data / "cluster" / "PG_VERSION"
        is_new = not version_file.exists()
        postgresql = installation.find(None if is_new else int(version_file.read_text()))
        tree = postgresql.copy_to(self.data / "tree")
        cluster = self._make_cluster(tree.bindir)
        cluster.end_orphans()
        if is_new:
            self.report(f"making a PostgreSQL {postgresql.major} cluster in {self.data}")
            cluster.initialise()
        socket = self._make_socket_folder()
        cluster.configure(socket, self.port)
        # A client that waits for the server may connect before `_provision` does.
        deployment.place_backend(self.data / "python")
        # Relative to the server's working directory, because an absolute path may contain a colon.
        cluster.start(socket, {"PYTHONPATH": "../python"})
        server = cluster.find_server()
        if server is None:
            raise ObjectNotReady(
                "the server ended as soon as it had started", hint=f"See {self.log}."
            )
        return server

    def _provision(self, server: RunningServer) -> None:
        """Update the role, the database, the extension and the settings."""
        python = self.data / "python"
        if deployment.place_backend(python):
            self.report("sessions that are open keep the modules they have loaded: connect anew")
        with provision.connect_superuser(server.socket, server.port, "postgres") as connection:
            provision.create_database(connection)
            deployment.place_extension(provision.find_extension_folder(connection))
        with provision.connect_superuser(server.socket, server.port) as connection:
            provision.grant_database(connection, provision.DATABASE)
            version, has_psycopg2 = provision.probe_python(connection)
            if not has_psycopg2:
                deployment.link_psycopg2(python, version)
            digest_file = self.data / "extension.sha256"
            build = deployment.read_build()
            provision.install_extension(connection, build, digest_file, self.report)
            compilation_cache = self.data / "compiled"
            compilation_cache.mkdir(mode=0o700, exist_ok=True)
            settings = {
                "trainer_python": str(deployment.find_interpreter()),
                "worker_conninfo": provision.make_conninfo(server.socket, server.port),
                "compilation_cache": str(compilation_cache),
            }
            provision.write_settings(connection, settings)

    def _make_socket_folder(self) -> Path:
        """Create the folder of the socket.

        The folder has a short path in /tmp if its path is too long for the kernel or cannot be part
        of a URL.
        """
        folder = self.data / "run"
        length = len(os.fsencode(folder / f".s.PGSQL.{self.port}"))
        if length > MAX_SOCKET_BYTES or set(",:") & set(str(folder)):
            digest = hashlib.sha256(os.fsencode(self.data)).hexdigest()
            folder = Path("/tmp") / f"cerebro_db-{digest[:12]}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise InsufficientPrivilege(
                f"{folder} belongs to somebody else, who could listen there in our place",
                hint="Remove it, or choose another folder with --data.",
            )
        folder.chmod(0o700)
        return folder


def _find_cluster(data: Path, bindir: Path = Path()) -> Cluster:
    return Cluster(bindir=bindir, data=data / "cluster", log=data / LOG)


def _stop(data: Path) -> bool:
    with _lock(data):
        return _find_cluster(data).stop()


@contextmanager
def _lock(data: Path) -> Iterator[None]:
    """Hold the lock of a server's folder, so that concurrent calls run one after another."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock_file = (data / "lock").open("w")
    except PermissionError as error:
        raise InsufficientPrivilege(
            f"the system user {pwd.getpwuid(os.geteuid()).pw_name} cannot write to {data}",
            hint="Choose a folder with --data that this user can reach and write to.",
        ) from error
    with lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def choose_folder() -> Path:
    """Return a folder next to the virtual environment if it is writable, else one of the user."""
    parent = Path(sys.prefix).resolve().parent
    folder = parent / ".cerebro"
    has_environment = sys.prefix != sys.base_prefix
    if has_environment and os.access(folder if folder.exists() else parent, os.W_OK):
        return folder
    if os.geteuid() == 0:
        return Path("/var/lib/cerebro_db/server")
    data_home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    return data_home / "cerebro_db"
