"""A server that is process 1, as in a container without an init: orphans come to it, and it takes
one that a signal ended for a crashed backend of its own, after which it ends all sessions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pytest
from processes import command_line, descendants, eventually, parent, processes
from psycopg2.extensions import parse_dsn
from servers import started
from workbench import Workbench

Open = Callable[[], Workbench]
REPORT = "SELECT cerebro.trainer_report('none') ->> 'framework'"
BARE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": "../python"}


def alone(cluster: Path) -> list[str]:
    """How a program is made process 1 of a namespace, as the owner of the cluster."""
    owner, root = cluster.stat(), os.geteuid() == 0
    user = (
        ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]
        if root
        else []
    )
    return [
        "unshare",
        *([] if root else ["--user", "--map-current-user"]),
        "--pid",
        "--fork",
        "--mount-proc",
        *user,
    ]


refused = subprocess.run(
    [*alone(Path.home()), "true"], capture_output=True, text=True, check=False
).stderr.strip()
pytestmark = [
    pytest.mark.long,
    pytest.mark.postgresql("this starts a server of one process"),
    pytest.mark.skipif(
        bool(refused), reason=f"no namespace of processes can be made here: {refused}"
    ),
]


@dataclass(frozen=True)
class Container:
    """What runs in the namespace, by its number outside."""

    process: int
    open: Open

    def named(self, title: str) -> set[int]:
        return {
            pid
            for pid in descendants(self.process)
            if command_line(pid)[:1] and title in command_line(pid)[0]
        }

    def kill(self, title: str) -> None:
        """Kill what `ps` calls so, and see it gone, and whoever buries it be done with that."""
        killed = self.named(title)
        assert killed
        for pid in killed:
            with suppress(ProcessLookupError):  # the end of the one before was its own
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: not [pid for pid in killed if Path(f"/proc/{pid}").exists()])


@pytest.fixture(scope="module")
def container(shared_folder: Path) -> Iterator[Container]:
    data = shared_folder / "data"
    url = started(data)
    stop = [sys.executable, "-I", "-m", "cerebro_db", "server", "stop", "--data", str(data)]
    subprocess.run(stop, check=True, capture_output=True, cwd="/")
    cluster = data / "cluster"
    postgres = (cluster / "postmaster.opts").read_text().split()[0]
    sockets = Path(parse_dsn(url)["host"])  # which goes when a server stops
    sockets.mkdir(mode=0o700)
    os.chown(sockets, cluster.stat().st_uid, cluster.stat().st_gid)
    with (
        (shared_folder / "log").open("w") as log,
        subprocess.Popen(
            [*alone(cluster), postgres, "-D", "."], cwd=cluster, env=BARE, stderr=log
        ) as process,
    ):
        opened: list[Workbench] = []

        def connect() -> Workbench:
            opened.append(eventually(lambda: connected(url)))  # type: ignore[arg-type]
            return opened[-1]

        yield Container(process.pid, connect)
        for each in opened:
            each.close()
        (first,) = (pid for pid in processes() if parent(pid) == process.pid)
        os.kill(first, signal.SIGKILL)  # with it the whole namespace ends


def connected(url: str) -> Workbench | None:
    try:
        return Workbench(url)
    except psycopg2.OperationalError:
        return None


def test_no_end_of_ours_looks_like_a_crash(container: Container) -> None:
    witness, session = container.open(), container.open()
    assert (
        witness.value("SELECT current_setting('data_directory')")
        and session.value(REPORT) == "none"
    )
    for victims in (
        ["cerebro_trainer"],
        ["cerebro_nursery"],
        ["cerebro_nursery", "cerebro_trainer"],
    ):
        for title in victims:
            if container.named(title):
                container.kill(title)
        eventually(lambda: not container.named("cerebro_trainer"))
        assert (witness.value("SELECT 1"), session.value("SELECT 1")) == (1, 1)
        assert session.value(REPORT) == "none", "by another"
    session.close()  # the next test waits until nobody has a trainer


@pytest.mark.parametrize("victim", ["none kept", "cerebro_nursery"])
def test_nor_does_the_end_of_a_trainer_that_nobody_has(container: Container, victim: str) -> None:
    witness, session = container.open(), container.open()
    assert session.value(REPORT) == "none"
    session.close()
    eventually(lambda: container.named("none kept"))
    container.kill(victim)
    eventually(lambda: not container.named("cerebro_trainer"))
    assert witness.value("SELECT 1") == 1
    assert container.open().value(REPORT) == "none"


def test_a_backend_that_is_killed_takes_its_trainer_along_and_nothing_else(
    container: Container,
) -> None:
    """The server ends all sessions, as it does when a backend crashes; and goes on."""
    session = container.open()
    pid = session.value("SELECT pg_backend_pid()")
    assert session.value(
        'SELECT cerebro_internal.trainer_start(\'{"framework": "none"}\') IS NOT NULL'
    )
    assert len(container.named(f"cerebro_trainer: none for backend {pid}")) == 1
    container.kill("postgres: cerebro_db: cerebro")
    eventually(lambda: not container.named(f"cerebro_trainer: none for backend {pid}"))
    again = container.open()
    assert again.value(REPORT) == "none"


def test_the_keeper_is_why(container: Container) -> None:
    """It is an orphan itself, the only one: a signal that ends it is the one that the server takes
    for a crash.
    """
    witness, session = container.open(), container.open()
    assert session.value(REPORT) == "none"
    container.kill("cerebro_keeper")
    with pytest.raises(psycopg2.DatabaseError, match="server closed the connection"):
        eventually(lambda: witness.value("SELECT 1") != 1)
    assert container.open().value(REPORT) == "none"


def test_an_ordinary_signal_ends_the_keeper_without_a_crash(container: Container) -> None:
    witness, session = container.open(), container.open()
    assert session.value(REPORT) == "none"
    (keeper,) = container.named("cerebro_keeper")
    os.kill(keeper, signal.SIGTERM)
    for title in ("cerebro_keeper", "cerebro_nursery", "cerebro_trainer"):
        eventually(lambda title=title: not container.named(title))  # type: ignore[misc]
    assert witness.value("SELECT 1") == 1
    assert session.value(REPORT) == "none"
