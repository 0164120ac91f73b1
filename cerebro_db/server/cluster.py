"""A private PostgreSQL cluster: its files on disk and its server processes.

All code here runs as the system user who owns the server. A server runs if processes have the
cluster as their working directory; a file with a process number may remain after a crash.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cerebro_db.errors import ObjectNotReady

PORT = 5432  # only part of the socket's name

START_SECONDS = 300  # after a crash, a start includes recovery
STOP_SECONDS = 60.0
KILL_SECONDS = 15.0
LOG_LINES = 20

# Everyone who can reach the socket is trusted as any role. The socket is therefore in a folder that
# only the server's system user and root can enter, and the server listens on nothing else.
HBA = "local all all trust\n"


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """A running server."""

    pid: int  # first process
    port: int  # part of the socket's name
    socket: Path  # folder of the socket


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster on disk."""

    bindir: Path  # binaries that run the cluster
    data: Path
    log: Path

    def find_server(self) -> RunningServer | None:
        """Return the server of this cluster, if it runs."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            server = RunningServer(pid=int(lines[0]), port=int(lines[3]), socket=Path(lines[4]))
        except (FileNotFoundError, IndexError, ValueError):
            return None
        if server.pid not in find_processes(self.data):
            return None
        return server

    def initialise(self) -> None:
        """Create the cluster, from scratch if an earlier attempt was interrupted."""
        if (self.data / "PG_VERSION").exists():
            return
        partial = self.data.with_name("cluster.partial")
        shutil.rmtree(partial, ignore_errors=True)
        options = [
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--auth=trust",
            "--no-instructions",
        ]
        result = subprocess.run(
            [str(self.bindir / "initdb"), f"--pgdata={partial}", *options],
            cwd=self.data.parent,
            env=_environment(),
            capture_output=True,
            text=True,
        )
        if result.returncode:
            message = result.stderr.strip() or result.stdout.strip()
            raise ObjectNotReady(f"initdb failed: {message}")
        with (partial / "postgresql.conf").open("a") as conf:
            conf.write(
                "\n# Written at each start. What follows this line, or ALTER SYSTEM sets, wins.\n"
            )
            conf.write("include = 'cerebro_db.conf'\n")
        partial.rename(self.data)

    def configure(self, socket: Path, port: int) -> None:
        """Write the settings that are the same for all embedded servers, and HBA."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": '"' + str(socket).replace('"', '""') + '"',
            "unix_socket_permissions": "0700",
            "port": str(port),
            "max_connections": "100",
            "shared_buffers": f"{_shared_buffers_mb()}MB",
            "cluster_name": "cerebro_db",
            "log_line_prefix": "%m [%p] %q%u@%d ",
        }
        text = ""
        for name, value in settings.items():
            quoted = value.replace("\\", "\\\\").replace("'", "''")
            text += f"{name} = '{quoted}'\n"
        (self.data / "cerebro_db.conf").write_text(text)
        (self.data / "pg_hba.conf").write_text(HBA)

    def start(self, socket: Path, environment: Mapping[str, str]) -> None:
        """Start the server and wait until it accepts connections.

        Raises:
            ObjectNotReady: the server did not start; the detail contains its log.
        """
        self._remove_stale_files(socket)
        log_start = self.log.stat().st_size if self.log.exists() else 0
        options = ["--wait", f"--timeout={START_SECONDS}", "--silent", f"--log={self.log}"]
        result = subprocess.run(
            [str(self.bindir / "pg_ctl"), "start", f"--pgdata={self.data}", *options],
            cwd=self.data,
            env=_environment() | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if result.returncode:
            lines = self.log.read_bytes()[log_start:].decode(errors="replace").splitlines()
            raise ObjectNotReady(
                f"the server did not start: {result.stderr.strip()}",
                detail="\n".join(lines[-LOG_LINES:]),
                hint=f"The whole log is in {self.log}.",
            )

    def stop(self) -> bool:
        """Stop the server and its sessions; return False if the server did not run."""
        server = self.find_server()
        if server is None:
            return False
        os.kill(server.pid, signal.SIGINT)  # PostgreSQL's "fast shutdown"
        if not _wait_for_end(self.data, STOP_SECONDS):
            # A server that recovers from a crash may never end; the next start recovers instead.
            with contextlib.suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGQUIT)
        if not _wait_for_end(self.data, KILL_SECONDS):
            raise ObjectNotReady(
                f"the server (process {server.pid}) does not stop", hint=f"See {self.log}."
            )
        with contextlib.suppress(OSError):
            server.socket.rmdir()  # each start creates it; it may be outside the server's folder
        return True

    def end_orphans(self) -> None:
        """Kill a server whose cluster was deleted, as `git clean` does."""
        deleted = Path(f"{self.data} (deleted)")
        for signal_number in (signal.SIGQUIT, signal.SIGKILL):
            for pid in find_processes(deleted):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
            if _wait_for_end(deleted, KILL_SECONDS):
                return

    def _remove_stale_files(self, socket: Path) -> None:
        # If another process has the recorded number, PostgreSQL refuses to start. Processes of the
        # old server need time to notice its end; the files must remain until they have ended.
        if _wait_for_end(self.data, KILL_SECONDS):
            for path in (self.data / "postmaster.pid", *socket.glob(".s.PGSQL.*")):
                path.unlink(missing_ok=True)


def find_processes(folder: Path) -> set[int]:
    """Return the server processes with this working directory that the user may inspect."""
    pids = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_in_folder = os.readlink(entry / "cwd") == str(folder)
            if is_in_folder and (entry / "comm").read_text() == "postgres\n":
                pids.add(int(entry.name))
    return pids


def _wait_for_end(folder: Path, seconds: float) -> bool:
    """Wait until no server process works in the folder; return False after so many seconds."""
    deadline = time.monotonic() + seconds
    while find_processes(folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _environment() -> dict[str, str]:
    """Return the environment of a server process, without the variables of the caller."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def _shared_buffers_mb() -> int:
    """Return an eighth of the memory of this machine or container, from 64 to 512 MB."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(64, min(512, min(limits) // 8 // 2**20))
