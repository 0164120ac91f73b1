"""The embedded server: a private PostgreSQL beside the virtual environment, for first tries and
tests.

It asks for nothing: no root, no password, no free TCP port, and it changes nothing outside its own
folder:

    cluster/         the database cluster
    tree/            PostgreSQL's binaries and extension folder, see installation.py
    python/          what backends import; the server's PYTHONPATH
    run/             the socket
    compiled/        what trainers compiled, for later ones
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
from cerebro_db.server.cluster import PORT, Cluster, Running

LONGEST_SOCKET = 107  # bytes of a Unix socket's path that the kernel takes


@dataclass(frozen=True, kw_only=True)
class Status:
    """What can be said about a server; `url` and `pid` are None where it does not run."""

    url: str | None
    pid: int | None
    data: Path
    log: Path


class EmbeddedServer:
    """The server whose files lie in `data`. Starting and stopping can be repeated and interrupted.

    Called as root, both happen as another system user, because PostgreSQL refuses to run as root.
    """

    def __init__(
        self, data: Path | None = None, port: int = PORT, say: Callable[[str], None] = print
    ) -> None:
        self.data = (data or default_data()).resolve()
        if forbidden := sorted(set('"$`\\\n') & set(str(self.data))):
            raise InvalidParameter(
                f"a server cannot lie in a folder with {forbidden[0]!r} in its path: {self.data}",
                detail="PostgreSQL's own programs hand their path to a shell.",
                hint="Choose another folder with --data.",
            )
        self.port = port
        self.say = say
        self.log = self.data / "postgresql.log"

    def start(self) -> str:
        """Makes what is missing, starts the server unless it runs, and gives the URL of its
        database.
        """
        if os.geteuid() == 0:
            run_as.give(self.data)
            arguments = ["server", "start", "--data", str(self.data), "--port", str(self.port)]
            return run_as.run(self.data, arguments, self.say).splitlines()[-1]
        with self._locked():
            deployment.build()
            running = self._cluster().running()
            if running is None:
                running = self._start()
            elif running.port != self.port:
                self.say(f"it runs on port {running.port} already; stop it first to change that")
            self._provision(running)
            return provision.url(running.socket, running.port)

    def stop(self) -> bool:
        """Stops the server; False if it did not run."""
        if self.status().pid is None:
            return False
        if os.geteuid() == 0:
            run_as.run(self.data, ["server", "stop", "--data", str(self.data)], self.say)
            return True
        with self._locked():
            return self._cluster().stop()

    def status(self) -> Status:
        """Whether the server runs, and where everything is."""
        running = self._cluster().running()
        if running is None:
            return Status(url=None, pid=None, data=self.data, log=self.log)
        url = provision.url(running.socket, running.port)
        return Status(url=url, pid=running.pid, data=self.data, log=self.log)

    def _cluster(self, bindir: Path = Path()) -> Cluster:
        return Cluster(bindir=bindir, data=self.data / "cluster", log=self.log)

    def _start(self) -> Running:
        made_by = self.data / "cluster" / "PG_VERSION"
        found = installation.find(int(made_by.read_text()) if made_by.exists() else None)
        tree = found.copy_to(self.data / "tree")
        cluster = self._cluster(tree.bindir)
        cluster.end_orphans()
        if not made_by.exists():
            self.say(f"making a PostgreSQL {found.major} cluster in {self.data}")
            cluster.initialise()
        socket = self._socket_folder()
        cluster.configure(socket, self.port)
        deployment.place_backend(
            self.data / "python"
        )  # now, for sessions that are quicker than this one
        # Relative to the cluster, where the server's processes work, because a path is cut at
        # colons.
        cluster.start(socket, {"PYTHONPATH": "../python"})
        running = cluster.running()
        if running is None:
            raise ObjectNotReady(
                "the server ended as soon as it had started", hint=f"See {self.log}."
            )
        return running

    def _provision(self, running: Running) -> None:
        python = self.data / "python"
        if deployment.place_backend(python):
            self.say("sessions that are open keep the modules they have loaded: connect anew")
        socket, port = running.socket, running.port
        with provision.superuser(socket, port, "postgres") as connection:
            provision.make_database(connection)
            deployment.place_extension(provision.extension_folder(connection))
        with provision.superuser(socket, port) as connection:
            provision.open_database(connection, provision.DATABASE)
            version, has_psycopg2 = provision.embedded_python(connection)
            if not has_psycopg2:
                deployment.lend_psycopg2(python, version)
            remembered = self.data / "extension.sha256"
            provision.install(connection, deployment.build(), remembered, self.say)
            trainer = str(deployment.interpreter())
            worker = provision.conninfo(socket, port)
            compiled = self.data / "compiled"
            compiled.mkdir(mode=0o700, exist_ok=True)
            settings = {
                "trainer_python": trainer,
                "worker_conninfo": worker,
                "compilation_cache": str(compiled),
            }
            provision.write_settings(connection, settings)

    def _socket_folder(self) -> Path:
        """The folder of the socket; a short one elsewhere if the kernel or a URL could not take its
        path.
        """
        folder = self.data / "run"
        length = len(os.fsencode(folder / f".s.PGSQL.{self.port}"))
        if length > LONGEST_SOCKET or set(",:") & set(str(folder)):
            folder = (
                Path("/tmp")
                / f"cerebro_db-{hashlib.sha256(os.fsencode(self.data)).hexdigest()[:12]}"
            )
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            raise InsufficientPrivilege(
                f"{folder} belongs to somebody else, who could listen there in our place",
                hint="Remove it, or choose another folder with --data.",
            )
        folder.chmod(0o700)
        return folder

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Of several calls at once for one folder, each waits for the one before it."""
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self.data / "lock").open("w")
        except PermissionError as error:
            raise InsufficientPrivilege(
                f"the system user {pwd.getpwuid(os.geteuid()).pw_name} cannot write to {self.data}",
                hint="Choose a folder with --data that this user can reach and write to.",
            ) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def default_data() -> Path:
    """A folder beside the virtual environment, else one of the user's own."""
    environment = Path(sys.prefix).resolve()
    in_environment = sys.prefix != sys.base_prefix
    beside = environment.parent / ".cerebro"
    if in_environment and os.access(beside if beside.exists() else environment.parent, os.W_OK):
        return beside
    if os.geteuid() == 0:
        return Path("/var/lib/cerebro_db/server")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "cerebro_db"
