"""The embedded server: made, started, found, stopped, whatever happened to it before and wherever
it lies.

It is a PostgreSQL; cerebro_db makes no Greenplum.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psycopg2
import pytest
from sqlalchemy.engine import make_url

from cerebro_db.driver import get_engine
from cerebro_db.server.cluster import find_processes

COMMAND = (sys.executable, "-I", "-m", "cerebro_db", "server")
PATIENCE = 60.0


def run(
    action: str, data: Path, user: pwd.struct_passwd | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `cerebro-db server`, as another system user where one is given."""
    command = [*COMMAND, action, "--data", str(data)]
    if user:
        command = [
            "setpriv",
            f"--reuid={user.pw_uid}",
            f"--regid={user.pw_gid}",
            "--clear-groups",
            *command,
        ]
    return subprocess.run(command, cwd="/", capture_output=True, text=True)


def start(data: Path, user: pwd.struct_passwd | None = None) -> str:
    done = run("start", data, user)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def ask(url: str, query: str) -> object:
    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone() if cursor.description else None
            return row and row[0]
    finally:
        connection.close()


def as_superuser(url: str) -> str:
    return url.replace("//cerebro@", "//postgres@")


def postmaster(data: Path) -> int:
    return int((data / "cluster" / "postmaster.pid").read_text().splitlines()[0])


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


class Served(NamedTuple):
    """The folder of a started server, and its URL."""

    data: Path
    url: str


@pytest.fixture(scope="module")
def served(shared_folder: Path) -> Served:
    """A started server, which the tests leave as they found it."""
    return Served(shared_folder / "server", start(shared_folder / "server"))


@pytest.mark.long
def test_a_life(folder: Path) -> None:
    """A server from before its first start until after its removal; its folder has a name that asks
    for quotes.
    """
    data = folder / "größer als 'a:b', c;d 100%"
    assert run("status", data).returncode == 3
    assert not data.exists(), "asking makes nothing"
    interrupt_a_start(data)
    url = start_at_once(data)
    check_sessions(url)
    ask(url, "CREATE TABLE kept AS SELECT 1")
    start_and_stop(data, url)
    crash(data, url)
    build_anew(data, url)
    remove(data, url)


def start_and_stop(data: Path, url: str) -> None:
    pid = postmaster(data)
    assert start(data) == url
    assert postmaster(data) == pid, "a started server is left alone"
    status = run("status", data)
    assert status.returncode == 0
    for told in (url, str(data), str(data / "postgresql.log"), str(pid)):
        assert told in status.stdout

    assert run("stop", data).returncode == 0
    assert not find_processes(data / "cluster")
    assert run("status", data).returncode == 3
    assert run("stop", data).returncode == 0, "stopping a stopped server is no error"

    assert start(data) == url
    assert ask(url, "TABLE kept") == 1


def test_what_the_role_finds(served: Served) -> None:
    url = served.url
    assert make_url(url).username == make_url(url).database == "cerebro"
    with get_engine(url).connect() as connection:
        assert connection.exec_driver_sql("SELECT current_schemas(false)").scalar() == [
            "public",
            "madlib",
        ]
        schema = (
            "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'cerebro_db'"
        )
        assert connection.exec_driver_sql(schema).scalar() == "madlib"
        assert not connection.exec_driver_sql(
            "SELECT usesuper FROM pg_user WHERE usename = user"
        ).scalar()
        connection.exec_driver_sql("CREATE SCHEMA own")
        connection.exec_driver_sql("CREATE TABLE own ()")
        activity = "SELECT count(*) FROM pg_stat_activity WHERE query = '<insufficient privilege>'"
        assert connection.exec_driver_sql(activity).scalar() == 0
    connection.engine.dispose()


def test_only_the_owner_reaches_it(served: Served) -> None:
    data, url = served
    assert ask(as_superuser(url), "SHOW listen_addresses") == ""
    rule = "concat_ws(' ', type, database::text, user_name::text, auth_method)"
    rules = f"SELECT string_agg({rule}, ';') FROM pg_hba_file_rules"
    assert ask(as_superuser(url), rules) == "local {all} {all} trust"
    socket = (data / "run").stat()
    assert socket.st_mode & 0o777 == 0o700
    expected = pwd.getpwnam("postgres").pw_uid if os.geteuid() == 0 else os.geteuid()
    assert owners(find_processes(data / "cluster")) == {socket.st_uid} == {expected}


def test_settings_follow_the_environment(served: Served) -> None:
    data, url = served.data, as_superuser(served.url)
    setting = "SELECT value FROM cerebro.setting WHERE name = '{}'"
    trainer = str(ask(url, setting.format("trainer_python")))
    subprocess.run([trainer, "-I", "-c", "import cerebro_trainer"], check=True, cwd="/")
    worker = str(ask(url, setting.format("worker_conninfo")))
    assert ask(f"{worker} dbname=cerebro user=cerebro", "SELECT current_user") == "cerebro"

    ask(url, "SELECT cerebro.set('trainer_python', '/nowhere')")
    ask(url, "SELECT cerebro.set('worker_conninfo', 'host=/nowhere')")
    start(data)
    assert ask(url, setting.format("trainer_python")) == trainer
    assert ask(url, setting.format("worker_conninfo")) == worker


def build_anew(data: Path, url: str) -> None:
    """Another build replaces the extension."""
    url = as_superuser(url)
    made = "SELECT oid FROM pg_extension WHERE extname = 'cerebro_db'"
    before = ask(url, made)
    assert "anew" not in run("start", data).stderr
    assert ask(url, made) == before, "the same build stays"
    (data / "extension.sha256").write_text("of another build")
    assert "anew" in run("start", data).stderr
    assert ask(url, made) not in (None, before)


def start_at_once(data: Path) -> str:
    """Starts at once make one server; its URL."""
    with ThreadPoolExecutor(3) as pool:
        urls = set(pool.map(start, [data] * 3))
    assert len(urls) == 1
    assert (data / "postgresql.log").read_text().count("ready to accept") == 1
    return urls.pop()


def interrupt_a_start(data: Path) -> None:
    """A start can be interrupted, and is then as if it had not been tried."""
    command = [*COMMAND, "start", "--data", str(data)]
    first = subprocess.Popen(command, cwd="/", start_new_session=True, stderr=subprocess.DEVNULL)
    wait_until(lambda: (data / "cluster.partial").exists())
    os.killpg(first.pid, signal.SIGINT)
    assert first.wait(PATIENCE) != 0
    (data / "postgresql.log").unlink(missing_ok=True)  # of a server that was begun already


def crash(data: Path, url: str) -> None:
    """A crash is recovered from."""
    os.kill(postmaster(data), signal.SIGKILL)
    wait_until(lambda: run("status", data).returncode == 3)
    # After a restart of the machine the number may be any other process's, such as ours.
    pid_file = data / "cluster" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n" + pid_file.read_text().partition("\n")[2])
    assert run("status", data).returncode == 3
    assert start(data) == url
    assert ask(url, "TABLE kept") == 1


def remove(data: Path, url: str) -> None:
    """A deleted server makes room."""
    shutil.rmtree(data)
    assert find_processes(Path(f"{data / 'cluster'} (deleted)"))
    assert run("status", data).returncode == 3
    assert start(data) == url
    assert not find_processes(Path(f"{data / 'cluster'} (deleted)"))
    assert ask(url, "SELECT count(*) FROM pg_extension WHERE extname = 'cerebro_db'") == 1


@pytest.mark.long
def test_a_folder_whose_name_is_too_long_for_a_socket(folder: Path) -> None:
    data = folder / ("long" * 30)
    url = start(data)
    check_sessions(url)
    assert run("stop", data).returncode == 0
    assert not Path(str(make_url(url).query["host"])).exists(), "nothing stays outside the folder"


def check_sessions(url: str) -> None:
    """By psycopg2, by SQLAlchemy, and as workers connect."""
    assert ask(url, "SELECT current_user") == "cerebro"
    with get_engine(url).connect() as connection:
        assert connection.exec_driver_sql("SELECT current_user").scalar() == "cerebro"
    connection.engine.dispose()
    worker = ask(
        as_superuser(url), "SELECT value FROM cerebro.setting WHERE name = 'worker_conninfo'"
    )
    assert ask(f"{worker} dbname=cerebro user=cerebro", "SELECT 1") == 1
    ask(as_superuser(url), "DO LANGUAGE plpython3u 'import cerebro_plpy'")


def test_a_folder_that_a_shell_would_misread_is_refused(folder: Path) -> None:
    refused = run("start", folder / "$HOME")
    assert refused.returncode == 1
    assert (
        "ERROR" in refused.stderr and "HINT" in refused.stderr and "Traceback" not in refused.stderr
    )


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_needs_no_root(folder: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    data = folder / "server"
    data.mkdir()
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    url = start(data, nobody)
    assert ask(url, "SELECT current_user") == "cerebro"
    assert owners(find_processes(data / "cluster")) == {nobody.pw_uid}
    assert run("stop", data, nobody).returncode == 0


def owners(pids: set[int]) -> set[int]:
    """The users that run these processes, of which some may have ended."""
    found = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            found.add(Path(f"/proc/{pid}").stat().st_uid)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands a server to another user")
def test_a_folder_that_the_server_user_cannot_reach(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0o700)
    refused = run("start", folder / "closed" / "server")
    assert refused.returncode == 1
    assert (
        "postgres" in refused.stderr
        and "HINT" in refused.stderr
        and "Traceback" not in refused.stderr
    )
