"""A PostgreSQL of an administrator's own: a private cluster whose logins its own files decide."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cerebro_db.server import deployment, installation
from cerebro_db.setup.server_address import ServerAddress

PORT = 5432
HBA = """\
# PostgreSQL Client Authentication Configuration File
# ===================================================

# DO NOT DISABLE!
# Database administrative login by Unix domain socket
local   all             {user}                                peer

# TYPE  DATABASE        USER            ADDRESS                 METHOD
local   all             all                                     peer
host    all             all             127.0.0.1/32            scram-sha-256
"""
IDENT = "# MAPNAME       SYSTEM-USERNAME         PG-USERNAME\n"


@dataclass(frozen=True, kw_only=True)
class OwnServer:
    """A server, and the files that a setup may change."""

    root: Path
    address: ServerAddress
    bindir: Path
    extension: Path
    python: Path

    @property
    def hba(self) -> Path:
        return self.root / "cluster" / "pg_hba.conf"

    @property
    def ident(self) -> Path:
        return self.root / "cluster" / "pg_ident.conf"

    @property
    def options(self) -> list[str]:
        return ["--host", str(self.address.folder), "--port", str(self.address.port)]

    def query(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        with self.address.connect(database) as connection:
            result = connection.exec_driver_sql(statement)
            return [tuple(row) for row in result] if result.returns_rows else []

    def write(self, hba: str, ident: str = IDENT) -> None:
        """Write both files in place, and load them."""
        self.hba.write_text(hba.format(user=self.address.user.pw_name))
        self.ident.write_text(ident)
        if os.geteuid() == 0:
            os.chown(self.hba, self.address.user.pw_uid, self.address.user.pw_gid)
        self.reload()

    def reload(self) -> None:
        old = self._load_time()
        self.query("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 30
        while self._load_time() == old:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def _load_time(self) -> object:
        return self.query("SELECT pg_conf_load_time()")[0][0]

    def run(self, program: str, *arguments: str, **environment: str) -> None:
        """Run a program of the server as its system user."""
        subprocess.run(
            [str(self.bindir / program), *arguments],
            check=True,
            cwd=self.root,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environment},
            **switched(self.address.user),
        )


def switched(user: pwd.struct_passwd) -> dict[str, Any]:
    """What runs a process as another user, where that is possible and needed."""
    if os.geteuid() == user.pw_uid:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def started(locale: str = "C.UTF-8", encoding: str = "UTF8") -> Iterator[OwnServer]:
    """A new server without the extension's files, stopped and removed afterwards."""
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    root = Path(tempfile.mkdtemp(prefix="own-server-"))
    root.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(root, user.pw_uid, user.pw_gid)
    tree = installation.find().copy_to(root / "tree")
    python = root / "python"
    # An older package, by which the folder is found; and psycopg2, where the system has none.
    (python / deployment.PACKAGE).mkdir(parents=True)
    (python / deployment.PACKAGE / "__init__.py").write_text("")
    server = OwnServer(
        root=root,
        address=ServerAddress(folder=root, port=PORT, user=user),
        bindir=tree.bindir,
        extension=tree.sharedir / "extension",
        python=python,
    )
    for old in server.extension.glob("cerebro_db*"):
        old.unlink()
    cluster = str(root / "cluster")
    auth = ["--auth=peer", f"--username={user.pw_name}", f"--locale={locale}"]
    server.run("initdb", f"--pgdata={cluster}", *auth, f"--encoding={encoding}", "--no-sync")
    settings = f"-c listen_addresses= -c unix_socket_directories={root} -p {PORT} -c fsync=off"
    try:
        log = f"--log={root}/log"
        server.run(
            "pg_ctl", "start", "-w", f"-D{cluster}", log, "-o", settings, PYTHONPATH=str(python)
        )
        server.write(HBA)
        yield server
    finally:
        server.run("pg_ctl", "stop", "-w", f"-D{cluster}", "-m", "immediate")
        shutil.rmtree(root)
