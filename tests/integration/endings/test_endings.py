"""Whatever ends first, nothing goes on without it: callers, backends, the postmaster, trainers.

These tests use servers of their own, because they end them. A Greenplum is given, to all tests:
none of them ends it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from processes import alive, backend_of, command_line, descendants, eventually, parent, trainers
from servers import started
from workbench import Workbench, compile_text, setting, several

pytestmark = pytest.mark.long

CLIENT_ENDS = (psycopg2.OperationalError, psycopg2.InterfaceError, psycopg2.errors.AdminShutdown)


@pytest.fixture
def own(shared_folder: Path) -> Iterator[Workbench]:
    """A session at a server that nobody else uses, with tables to train on; started again when it
    was ended.
    """
    bench = Workbench(started(shared_folder / "data"))
    if not bench.exists("four"):
        bench.data()
        bench.pack("packed", 2)
        bench.configure("four", several(4))
    yield bench
    bench.close()


@pytest.mark.parametrize("victim", ["postmaster", "caller", "worker"])
def test_nothing_outlives_what_it_works_for(own: Workbench, victim: str) -> None:
    caller = own.pid()
    postmaster = parent(caller)
    with own.fitting("packed", "endless", "four", 100_000) as fitted:
        eventually(lambda: len(trainers(descendants(postmaster))) == 2)
        running = trainers(descendants(postmaster))
        worker = backend_of(command_line(min(running)))
        assert worker
        (nursery,) = {parent(pid) for pid in running}
        others = descendants(postmaster) | descendants(parent(nursery))
        os.kill(
            {"postmaster": postmaster, "caller": caller, "worker": worker}[victim], signal.SIGKILL
        )
        with pytest.raises(CLIENT_ENDS) as ended:
            fitted.result()
        # Who killed the caller's session has killed who could say why.
        assert victim == "caller" or ended.value.pgcode in (None, "08006", "57P01", "57P02"), (
            ended.value
        )
    eventually(lambda: not alive(running))
    if victim == "postmaster":
        eventually(lambda: not alive(others))
    else:
        eventually(lambda: accepts(own.url))  # it restarts by itself, after the loss of a backend


def test_calls_leave_room_for_others(own: Workbench) -> None:
    """By the administrator's setting; what waits for a next call of the same session makes room."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'cerebro\\_db%'"
    with setting(own, "max_workers_total", "2"):
        run = own.fit("packed", "modest", "four", 1, workers=2)
        assert own.value(query) == 2
        words = (
            "going on with 1 of 2 workers: 2 sessions of calls of cerebro_db are open on this "
            "server, of at most 2"
        )
        assert any(words in text for text in own.messages())
        assert (
            own.value("SELECT count(DISTINCT worker_pid) FROM cerebro.visit WHERE run_id = %s", run)
            == 1
        )
        own.rows("SELECT madlib_evaluate('modest', 'packed', 'measured', mst_key => 1)")
        own.configure("one", [compile_text()])
        own.fit("packed", "otherwise", "one", 1, backend="jax")
        assert own.value(query) == 2


def accepts(url: str) -> bool:
    """Whether the server takes connections."""
    try:
        psycopg2.connect(url).close()
    except psycopg2.OperationalError:
        return False
    return True


def test_a_server_that_was_killed_starts_again_and_shows_the_run_as_interrupted(
    own: Workbench, shared_folder: Path
) -> None:
    postmaster, before = parent(own.pid()), own.last_run_id()
    with own.fitting("packed", "endless", "four", 100_000) as fitted:
        observer = own.another()
        eventually(lambda: observer.newest_run() > before)
        observer.rows("CREATE TABLE later ()")  # which waits for the disk, as the log does not
        observer.close()
        running = descendants(postmaster)
        os.kill(postmaster, signal.SIGKILL)
        with pytest.raises(CLIENT_ENDS):
            fitted.result()
    eventually(lambda: not alive(running))
    again = Workbench(started(shared_folder / "data"))
    assert again.rows("SELECT status FROM cerebro.run WHERE run_id > %s", before) == [
        ("interrupted",)
    ]
    assert again.fit("packed", "finished", "four", 1) == again.newest_run()
    again.close()
