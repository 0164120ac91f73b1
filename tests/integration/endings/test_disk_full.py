"""A full disk ends a run with its reason, and costs nothing that was completed."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from models import dense, sequential
from processes import eventually
from servers import Database
from workbench import Workbench, several

pytestmark = pytest.mark.long

WIDE = sequential([4], dense(2_000, "one"), dense(100, "two"), dense(3, "out", "softmax"))
EPOCHS = 8
PAUSE = 0.001
COMPLETED = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"


@pytest.fixture
def place(folder: Path) -> Iterator[Path]:
    """A small file system."""
    place = folder / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """A file that takes all the room there is, and again what has become free since."""
    filler = place / "filler"
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return filler


@pytest.fixture
def small(place: Path, database: Database) -> Iterator[Path]:
    """It, and the states of the database's runs are to go there."""
    administrator = Workbench(database.superuser_url)
    facts = Path("/proc", str(administrator.pid())).stat()
    os.chown(place, facts.st_uid, facts.st_gid)
    name = f"small_{database.name}"
    administrator.rows(f"CREATE TABLESPACE {name} OWNER cerebro LOCATION '{place}'")
    # For sessions to come, such as workers.
    administrator.rows(
        f"ALTER ROLE cerebro IN DATABASE {database.name} SET default_tablespace = {name}"
    )
    yield place
    query = """SELECT c.oid::regclass::text FROM pg_class c JOIN pg_tablespace t
        ON t.oid = c.reltablespace
               WHERE c.relkind = 'r' AND t.spcname = %s"""
    for (table,) in administrator.rows(query, name):
        administrator.rows(f"DROP TABLE {table}")
    administrator.rows(f"DROP TABLESPACE {name}")
    administrator.close()


@pytest.fixture
def caller(database: Database) -> Iterator[Workbench]:
    """A session with configurations whose states are large, and whose visits are not made
    together.
    """
    session = Workbench(database.url)
    session.data()
    session.pack("packed", 2)
    session.configure("wide", several(2), ["batch_size=1,epochs=20"], session.model(WIDE))
    yield session
    session.close()


@pytest.fixture
def watcher(caller: Workbench) -> Iterator[Workbench]:
    session = caller.another()
    yield session
    session.close()


def test_a_full_disk_costs_nothing_that_was_completed(
    caller: Workbench, watcher: Workbench, small: Path
) -> None:
    with caller.fitting("packed", "model", "wide", EPOCHS) as fitted:
        eventually(lambda: watcher.value(COMPLETED, 0) >= 3)
        while not fitted.done():  # a state that is replaced leaves room for the next one
            fill(small)
            time.sleep(PAUSE)
        with pytest.raises(psycopg2.errors.DiskFull, match="No space left on device"):
            fitted.result()
    filler = fill(small)
    run, status, error = watcher.row("SELECT run_id, status, error FROM cerebro.run")
    assert status == "failed" and "No space left on device" in error
    completed = watcher.value(COMPLETED, 0)
    check_states(watcher, run)
    with pytest.raises(psycopg2.errors.DiskFull):
        watcher.rows("SELECT cerebro.resume(%s)", run)
    assert watcher.value(COMPLETED, 0) == completed
    check_states(watcher, run)
    filler.unlink()
    caller.rows("SELECT cerebro.resume(%s)", run)
    assert caller.value(COMPLETED, 0) == 2 * 2 * EPOCHS
    caller.fit("packed", "again", "wide", EPOCHS, schedule="replay", replay_run=run)
    assert caller.weights("model") == caller.weights("again")


def check_states(watcher: Workbench, run: int) -> None:
    """The state after the last completed visit of each configuration is there as it was logged."""
    newest = """SELECT DISTINCT ON (mst_key) state_table, state_bytes FROM cerebro.visit
                WHERE run_id = %s AND status = 'completed' ORDER BY mst_key, visit_no DESC"""
    for table, size in watcher.rows(newest, run):
        assert watcher.value(f"SELECT sum(octet_length(chunk)) FROM {table}") == size
