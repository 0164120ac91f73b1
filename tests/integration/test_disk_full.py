"""A full disk ends a run with its reason, and costs nothing that was completed."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from models import dense, sequential
from processes import eventually
from servers import started
from workbench import Workbench, several, superuser

WIDE = sequential([4], dense(2_000, "one"), dense(100, "two"), dense(3, "out", "softmax"))
EPOCHS = 4
COMPLETED = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"


@pytest.fixture
def small(folder: Path) -> Iterator[Path]:
    """A file system of its own, on which a server beside it may work."""
    place = folder / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """A file that takes all the room there is."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return filler


def prepared(folder: Path, small: Path) -> tuple[Workbench, Workbench]:
    """Two sessions at a server of the test's own; states are to go to the small file system."""
    caller = Workbench(started(folder / "data"))
    caller.data()
    caller.pack("packed", 2)
    caller.configure("wide", several(2), ["batch_size=1,epochs=5"], caller.model(WIDE))
    administrator = superuser(caller)
    facts = (folder / "data" / "cluster").stat()
    os.chown(small, facts.st_uid, facts.st_gid)
    administrator.rows(f"CREATE TABLESPACE small OWNER cerebro LOCATION '{small}'")
    administrator.rows("ALTER ROLE cerebro SET default_tablespace = small")  # for sessions to come, such as workers
    administrator.close()
    return caller, Workbench(caller.url)


def test_a_full_disk_costs_nothing_that_was_completed(folder: Path, small: Path) -> None:
    caller, watcher = prepared(folder, small)
    with caller.fitting("packed", "model", "wide", EPOCHS) as fitted:
        eventually(lambda: watcher.value(COMPLETED, 0) >= 3)
        filler = fill(small)
        with pytest.raises(psycopg2.errors.DiskFull, match="No space left on device"):
            fitted.result()
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
    caller.close()
    watcher.close()


def check_states(watcher: Workbench, run: int) -> None:
    """The state after the last completed visit of each configuration is there as it was logged."""
    newest = """SELECT DISTINCT ON (mst_key) state_table, state_bytes FROM cerebro.visit
                WHERE run_id = %s AND status = 'completed' ORDER BY mst_key, visit_no DESC"""
    for table, size in watcher.rows(newest, run):
        assert watcher.value(f"SELECT sum(octet_length(chunk)) FROM {table}") == size
