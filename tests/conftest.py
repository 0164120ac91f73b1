"""One private server for the whole test run, one database per test.

The server is an embedded server in a folder of its own, so no test can touch a server that somebody
uses. Starting it is safe to repeat, so each process of pytest-xdist does; the process that began
the run stops it.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import greenplum
import psycopg2
import pytest
from hangs import start_timer, stop_timer
from hypothesis import HealthCheck, settings
from marks import matches
from psycopg2.extensions import connection as Connection
from servers import Address, Database, Server
from sqlalchemy.engine import make_url
from workbench import Workbench
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from cerebro_db.server import provision

FOLDER = "CEREBRO_DB_TEST_FOLDER"
LOG_LINES = 60
FEW = 15
"""Examples of a property in `make test`; `make properties` has as many as the test says, or 100."""
pytest.register_assert_rewrite("course")  # whose assertions then show values
log_size = pytest.StashKey[int]()
numbers = itertools.count(1)
# Property tests must not fail because a machine is slow: no deadline per example, nor for drawing
# them. Nor must a change fail by an example that another run would not have drawn: examples follow
# from a test's text.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("all", settings.get_profile("new"), derandomize=True)
settings.register_profile("few", settings.get_profile("all"), max_examples=FEW)
settings.load_profile("all")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-objects", action="store_true", help="write what tests compare with (make objects)"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts its background jobs with SIGINT ignored, and all that they start; some tests
    # send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        folder = Path(tempfile.mkdtemp(prefix="cerebro-db-tests-", dir="/tmp"))
        folder.chmod(0o755)  # the server may run as another user
        os.environ[FOLDER] = str(folder)
        # Nor may a server of the tests become the one that the user's commands find.
        os.environ["XDG_STATE_HOME"] = str(folder / "state")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Have the garbage collector pass by the tests while each of three processes collects all of
    them, and later.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        folder = Path(os.environ.pop(FOLDER))
        if (folder / "server").exists():
            cerebro_db("server", "stop", "--data", str(folder / "server"))
        shutil.rmtree(folder)


def cerebro_db(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the installed command line, as a person would."""
    command = [sys.executable, "-I", "-m", "cerebro_db", *arguments]
    return subprocess.run(
        command, cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="session")
def server() -> Server:
    data = Path(os.environ[FOLDER]) / "server"
    started = cerebro_db("server", "start", "--data", str(data))
    assert started.returncode == 0, started.stderr
    url = make_url(started.stdout.splitlines()[-1])
    assert url.port is not None
    found = Server(socket=Path(str(url.query["host"])), port=url.port)
    with provision.connect_superuser(found.socket, found.port) as connection:
        # A test's data need not survive a power failure. A client waits for a statement whatever
        # signal it gets: only the server ends one that hangs, before the time of the test is over.
        for setting, value in (
            ("fsync", "off"),
            ("full_page_writes", "off"),
            ("statement_timeout", "'500s'"),
        ):
            connection.exec_driver_sql(f"ALTER SYSTEM SET {setting} = {value}")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    return found


@pytest.fixture(
    scope="session", params=["postgresql", "greenplum"] if greenplum.given() else ["postgresql"]
)
def platform(request: pytest.FixtureRequest) -> str:
    """Each platform that is given; the tests are the same, but for those that are marked with a
    reason.
    """
    return str(request.param)


@pytest.fixture(scope="session")
def address(platform: str, request: pytest.FixtureRequest) -> Address:
    """How databases of the platform's server are addressed."""
    if platform == "greenplum":
        return greenplum.address
    server: Server = request.getfixturevalue("server")
    return server.url


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        params = (
            item.callspec.params
            if isinstance(item, pytest.Function) and hasattr(item, "callspec")
            else {}
        )
        mark = item.get_closest_marker("postgresql")
        if mark and mark.args[0] and params.get("platform") == "greenplum":
            item.add_marker(pytest.mark.skip(reason=f"on PostgreSQL only: {mark.args[0]}"))
        if any(matches(mark.kwargs, params) for mark in item.iter_markers("long_for")):
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Ends a property test by an exception of its own; None leaves others to pytest-timeout."""
    if "hypothesis" not in item.keywords or settings.method != "signal":
        return None
    item.cancel_timeout = stop_timer  # type: ignore[attr-defined]
    start_timer(settings.timeout)
    return True


class Groups(LoadScopeScheduling):  # type: ignore[misc]
    """What runs one after the other in one process: a file, and all contract tests with the trainer
    of a framework.

    So that trainer is started once, not for each file.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, name = nodeid.partition("::")
        framework = (
            re.search(r"[\[-](tensorflow|jax|torch)[\]-]", name)
            if file.startswith("tests/contract/")
            else None
        )
        return framework[1] if framework else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups:
    return Groups(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not greenplum.given():
        terminalreporter.write_line(f"Without {greenplum.FOLDER}: {greenplum.MISSING}")


@pytest.fixture
def database(platform: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    with _new_database(platform, request) as made:
        yield made


@pytest.fixture(scope="module")
def shared_database(platform: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database of all tests of a module, for what is costly to make."""
    with _new_database(platform, request) as made:
        yield made


@pytest.fixture(scope="module")
def bench(shared_database: Database, request: pytest.FixtureRequest) -> Iterator[Workbench]:
    """A session of the ordinary role with data to train on, shared by the tests of a module, which
    may say FIT_WORKERS.

    The first run of each trainer costs the most: where one is as good as two, FIT_WORKERS is 1.
    """
    made = Workbench(shared_database.url, getattr(request.module, "FIT_WORKERS", None))
    made.data()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_superuser(shared_database: Database) -> Iterator[Workbench]:
    """A session of the superuser beside that of `bench`."""
    made = Workbench(shared_database.superuser_url)
    yield made
    made.close()


@contextmanager
def _new_database(platform: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = f"test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{next(numbers)}"
    if platform == "greenplum":
        with greenplum.database(name) as made:
            yield made
        return
    server: Server = request.getfixturevalue("server")
    with provision.connect_superuser(server.socket, server.port, "postgres") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {provision.DATABASE}")
    with provision.connect_superuser(server.socket, server.port, name) as connection:
        provision.grant_database(connection, name)
    yield Database(name=name, url=server.url(name), superuser_url=server.url(name, "postgres"))
    with provision.connect_superuser(server.socket, server.port, "postgres") as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    """A session of the ordinary role in which every statement commits."""
    yield from _session(database.url)


@pytest.fixture
def superuser(database: Database) -> Iterator[Connection]:
    """A session of the superuser in which every statement commits."""
    yield from _session(database.superuser_url)


def _session(url: str) -> Iterator[Connection]:
    opened = psycopg2.connect(url)
    opened.autocommit = True
    yield opened
    opened.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new folder that any system user can reach, for a server of the test's own; that server is
    stopped.
    """
    with _new_folder() as made:
        yield made


@pytest.fixture(scope="module")
def shared_folder() -> Iterator[Path]:
    """The same for all tests of a module."""
    with _new_folder() as made:
        yield made


@contextmanager
def _new_folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="cerebro-db-test-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    for data in made.iterdir():
        cerebro_db("server", "stop", "--data", str(data))
    shutil.rmtree(made)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    log = Path(os.environ[FOLDER]) / "server" / "postgresql.log"
    item.stash[log_size] = log.stat().st_size if log.exists() else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds to a failure what the server has logged since the test began."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    log = Path(os.environ[FOLDER]) / "server" / "postgresql.log"
    if report.failed and log.exists():
        lines = (
            log.read_bytes()[item.stash.get(log_size, 0) :].decode(errors="replace").splitlines()
        )
        report.sections.append(("the server's log", "\n".join(lines[-LOG_LINES:])))
    return report  # type: ignore[return-value]
