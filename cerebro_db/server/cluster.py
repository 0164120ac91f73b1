"""One private PostgreSQL cluster on disk and its processes: made, configured, started, found and
stopped.

Everything here runs as the system user who owns the server. The kernel is asked whether a server
runs: its processes have the cluster as their working directory, while a file with a process number
outlives a crash.
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

PORT = 5432  # only names the socket

START_SECONDS = 300  # after a crash a start includes recovery
STOP_SECONDS = 60.0
GONE_SECONDS = 15.0
LOG_LINES = 20

# Who reaches the socket owns the server, because every user there is trusted; so the socket lies in
# a folder that only the server's own system user (and root) can enter, and there is no other way
# in.
HBA = "local all all trust\n"


@dataclass(frozen=True, kw_only=True)
class Running:
    """A server at work: its first process and the port that names its socket."""

    pid: int
    port: int
    socket: Path


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The cluster in the folder `data`, run by the binaries in `bindir`, logging to `log`."""

    bindir: Path
    data: Path
    log: Path

    def running(self) -> Running | None:
        """The server of this cluster, if it is alive."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            pid, port, socket = int(lines[0]), int(lines[3]), Path(lines[4])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        return (
            Running(pid=pid, port=port, socket=socket) if pid in processes_in(self.data) else None
        )

    def initialise(self) -> None:
        """Makes the cluster; one that was interrupted halfway is thrown away."""
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
        done = subprocess.run(
            [str(self.bindir / "initdb"), f"--pgdata={partial}", *options],
            cwd=self.data.parent,
            env=_environment(),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ObjectNotReady(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")
        with (partial / "postgresql.conf").open("a") as conf:
            conf.write(
                "\n# Written at each start. What follows this line, or ALTER SYSTEM sets, wins.\n"
            )
            conf.write("include = 'cerebro_db.conf'\n")
        partial.rename(self.data)

    def configure(self, socket: Path, port: int) -> None:
        """Writes what the interface of the embedded server fixes; see HBA for who may connect."""
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
        quoted = {
            name: value.replace("\\", "\\\\").replace("'", "''") for name, value in settings.items()
        }
        text = "".join(f"{name} = '{value}'\n" for name, value in quoted.items())
        (self.data / "cerebro_db.conf").write_text(text)
        (self.data / "pg_hba.conf").write_text(HBA)

    def start(self, socket: Path, environment: Mapping[str, str]) -> None:
        """Starts the server and waits until it answers; what it logged is in the error if it does
        not.
        """
        self._remove_stale_files(socket)
        logged = self.log.stat().st_size if self.log.exists() else 0
        options = ["--wait", f"--timeout={START_SECONDS}", "--silent", f"--log={self.log}"]
        done = subprocess.run(
            [str(self.bindir / "pg_ctl"), "start", f"--pgdata={self.data}", *options],
            cwd=self.data,
            env=_environment() | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            lines = self.log.read_bytes()[logged:].decode(errors="replace").splitlines()
            raise ObjectNotReady(
                f"the server did not start: {done.stderr.strip()}",
                detail="\n".join(lines[-LOG_LINES:]),
                hint=f"The whole log is in {self.log}.",
            )

    def stop(self) -> bool:
        """Stops the server, ending its sessions; False if none ran."""
        running = self.running()
        if running is None:
            return False
        os.kill(running.pid, signal.SIGINT)  # PostgreSQL's "fast shutdown"
        if not _gone(self.data, STOP_SECONDS):
            # In the middle of a recovery from a crash it may never end; then the next start
            # recovers instead.
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, signal.SIGQUIT)
        if not _gone(self.data, GONE_SECONDS):
            raise ObjectNotReady(
                f"the server (process {running.pid}) does not stop", hint=f"See {self.log}."
            )
        with contextlib.suppress(OSError):
            running.socket.rmdir()  # made again at each start, and perhaps not in a folder of ours
        return True

    def end_orphans(self) -> None:
        """Ends a server whose cluster was deleted under it, as `git clean` does: its data is
        gone.
        """
        deleted = Path(f"{self.data} (deleted)")
        for number in (signal.SIGQUIT, signal.SIGKILL):
            for pid in processes_in(deleted):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if _gone(deleted, GONE_SECONDS):
                return

    def _remove_stale_files(self, socket: Path) -> None:
        # The process number in them may meanwhile be another process's, and PostgreSQL would refuse
        # to start. Processes of the old server get time to notice that it ended; while one lives
        # the files must stay.
        if _gone(self.data, GONE_SECONDS):
            for path in (self.data / "postmaster.pid", *socket.glob(".s.PGSQL.*")):
                path.unlink(missing_ok=True)


def processes_in(folder: Path) -> set[int]:
    """The server processes, of those that this user may look at, whose working directory is
    `folder`.
    """
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                os.readlink(entry / "cwd") == str(folder)
                and (entry / "comm").read_text() == "postgres\n"
            ):
                found.add(int(entry.name))
    return found


def _gone(folder: Path, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while processes_in(folder):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _environment() -> dict[str, str]:
    """What a server process needs of the caller's environment, which is nearly nothing."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def _shared_buffers_mb() -> int:
    """An eighth of the memory that this machine or container has, between 64 and 512 MB."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(64, min(512, min(limits) // 8 // 2**20))
