"""A run goes on when a primary segment ends as a whole, and comes back by its mirror or by itself.

Where segments have mirrors, one of these is promoted for good: gprecoverseg gives the cluster its
mirror back.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pytest
from followed_hints import read_statements
from processes import eventually
from servers import Database
from workbench import Workbench, several

pytestmark = [pytest.mark.long, pytest.mark.parametrize("platform", ["greenplum"], indirect=True)]

CONTENT, EPOCHS = 1, 2
SLOW = "batch_size=1,epochs=60"


@dataclass(frozen=True)
class Postmaster:
    """The process that a segment is, with all that starts it anew."""

    pid: int
    folder: str
    command: list[str]
    environment: dict[str, str]
    user: int

    def kill(self) -> None:
        """End it as a machine's failure would; what it had started ends by itself."""
        os.kill(self.pid, signal.SIGKILL)

    def start(self) -> None:
        """Start the segment again, as it was started; no child of this process."""
        subprocess.run(
            ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *self.command],
            env=self.environment,
            cwd=self.folder,
            user=self.user,
            group=os.stat(self.folder).st_gid,
            start_new_session=True,
            check=True,
        )


def postmaster(superuser: Workbench, content: int) -> Postmaster:
    """That of the primary of a segment."""
    query = "SELECT datadir FROM gp_segment_configuration WHERE content = %s AND role = 'p'"
    folder = superuser.value(query, content)
    pid = int((Path(folder) / "postmaster.pid").read_text().split()[0])
    process = Path(f"/proc/{pid}")
    pairs = (text.partition("=") for text in (process / "environ").read_text().split("\0") if text)
    return Postmaster(
        pid,
        folder,
        (process / "cmdline").read_text().rstrip("\0").split("\0"),
        {name: value for name, _, value in pairs},
        process.stat().st_uid,
    )


@pytest.fixture(scope="module")
def caller(bench: Workbench) -> Workbench:
    """A session with something to train, and a model that was trained undisturbed."""
    segments = bench.value(
        "SELECT count(*) FROM gp_segment_configuration WHERE content >= 0 AND role = 'p'"
    )
    bench.pack("packed", segments)
    bench.configure("slow", several(2), [SLOW])
    bench.fit("packed", "undisturbed", "slow", EPOCHS)
    return bench


@pytest.fixture
def cluster(shared_database: Database) -> Iterator[Workbench]:
    """A superuser's session, which is lost with the segment."""
    session = Workbench(shared_database.superuser_url)
    yield session
    session.close()


def has_mirror(superuser: Workbench, content: int) -> bool:
    """Whether the segment has a mirror that could take over."""
    query = (
        "SELECT count(*) FROM gp_segment_configuration WHERE content = %s AND (role, mode, "
        "status) = ('m', 's', 'u')"
    )
    return bool(superuser.value(query, content))


def test_a_primary_that_is_lost_costs_the_visits_under_way(
    caller: Workbench, cluster: Workbench, shared_database: Database
) -> None:
    before, segments = (
        caller.newest_run(),
        caller.value("SELECT count(DISTINCT __dist_key__) FROM packed"),
    )
    mirrored, lost = has_mirror(cluster, CONTENT), postmaster(cluster, CONTENT)
    watcher = caller.another()
    at_work = (
        "SELECT count(*) FROM cerebro.visit v WHERE v.run_id > %s AND v.status = 'running' AND "
        "v.segment_id IN (SELECT k.key FROM cerebro.segment_key k WHERE k.gp_segment_id = %s)"
    )
    session = caller.another()
    with session.fitting(
        "packed", "disturbed", "slow", EPOCHS, schedule="replay", replay_run=before
    ) as fitting:
        eventually(lambda: watcher.value(at_work, before, CONTENT))
        lost.kill()
        if not mirrored:
            eventually(lambda: not _serving(lost))
            lost.start()
        with pytest.raises(psycopg2.Error) as caught:
            fitting.result()
    watcher.close()
    session.close()
    (later,) = eventually(_reached(shared_database))
    run = later.newest_run()
    assert caught.value.pgcode == "08006"
    (statement,) = read_statements(caught.value, "SELECT cerebro.write_outputs({}, '{}');")
    assert statement == f"SELECT cerebro.write_outputs({run}, 'disturbed');"
    assert later.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    lost_visits = later.rows(
        "SELECT attempt, error FROM cerebro.visit WHERE run_id = %s AND status = 'failed'", run
    )
    assert {attempt for attempt, _ in lost_visits} == {1}, lost_visits
    assert len(lost_visits) <= segments, f"a worker's session is lost once: {lost_visits}"
    later.rows(statement)
    assert later.weights("disturbed") == later.weights("undisturbed")
    later.close()


def _serving(lost: Postmaster) -> bool:
    """Whether a process of the segment is still there, which would keep its memory from a new
    one.
    """
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == lost.folder:
                return True
        except OSError:
            continue
    return False


def _reached(database: Database) -> Callable[[], list[Workbench]]:
    """A session in which all segments answer; none while there is none."""

    def session() -> list[Workbench]:
        try:
            made = Workbench(database.url)
            made.rows("SELECT count(*) FROM gp_dist_random('gp_id')")
        except psycopg2.Error:
            return []
        return [made]

    return session
