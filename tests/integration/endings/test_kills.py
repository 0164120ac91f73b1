"""Trainers that are killed, at any moment and again and again: the run ends, with the bits it would
have had.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial

import psycopg2
import pytest
from processes import eventually, trainers
from workbench import Workbench, setting, several

LONG = "batch_size=1,epochs=60"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("long", several(2), [LONG])


@pytest.fixture
def watcher(bench: Workbench) -> Iterator[Workbench]:
    other = bench.another()
    yield other
    other.close()


@pytest.fixture
def fresh(bench: Workbench) -> Iterator[Workbench]:
    """A session that has no trainers waiting."""
    session = bench.another()
    yield session
    session.close()


def kill(watcher: Workbench) -> set[int]:
    """Kill every trainer that works, or starts, for a worker session of this database."""
    found = trainers(watcher.workers())
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return found


@pytest.mark.long
def test_kills_at_start_up_and_later_change_no_bit(
    bench: Workbench, watcher: Workbench, fresh: Workbench
) -> None:
    before = bench.value("SELECT coalesce(max(run_id), 0) FROM cerebro.run")
    # Forked, a trainer may be at its first visit before it is found; executed, it starts for longer
    # than that.
    executed = setting(bench, "trainer_nursery_seconds", "0")
    with executed, fresh.fitting("packed", "killed", "long", 2, workers=2) as fitted:
        eventually(lambda: kill(watcher))
        for done in (0, 1, 4):
            eventually(partial(kill_at_work, watcher, before, done))
        run = fitted.result()
    failed = bench.value(
        "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'failed'", run
    )
    assert 3 <= failed <= 6, (
        "each kill costs the visit under way, and the one before where that is not stored yet"
    )
    assert (
        bench.value(
            "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'", run
        )
        == 8
    )
    bench.fit("packed", "undisturbed", "long", 2, schedule="replay", replay_run=run)
    assert bench.weights("killed") == bench.weights("undisturbed")


@pytest.mark.long
def test_software_is_logged_although_the_first_trainer_was_killed_at_its_start(
    bench: Workbench, watcher: Workbench, fresh: Workbench
) -> None:
    with (
        setting(bench, "trainer_nursery_seconds", "0"),
        fresh.fitting("packed", "killed_at_start", "long", 1, workers=1) as fitted,
    ):
        eventually(lambda: kill(watcher))
        run = fitted.result()
    software = bench.value("SELECT software FROM cerebro.run WHERE run_id = %s", run)
    assert software.keys() >= {"cerebro_db", "tensorflow", "keras", "python"}


def kill_at_work(watcher: Workbench, before: int, done: int) -> bool:
    """Once so many visits have been completed, kill one trainer that trains."""
    visits = "SELECT worker_pid, status FROM cerebro.visit WHERE run_id > %s"
    found = watcher.rows(visits, before)
    at_work = trainers(
        {pid for worker, status in found if status == "running" for pid in watcher.serving(worker)}
    )
    if [status for _, status in found].count("completed") < done or not at_work:
        return False
    os.kill(min(at_work), signal.SIGKILL)
    return True


@pytest.mark.long
def test_a_visit_that_kills_three_trainers_fails_its_config_alone(
    bench: Workbench, watcher: Workbench, fresh: Workbench
) -> None:
    before = bench.last_run_id()

    def kill_config_2() -> bool:
        """Kill the trainer of the second configuration whenever it is at its first visit."""
        running = (
            "SELECT worker_pid FROM cerebro.visit WHERE run_id > %s AND mst_key = 2 AND status = "
            "'running'"
        )
        for pid in trainers(
            {pid for (worker,) in watcher.rows(running, before) for pid in watcher.serving(worker)}
        ):
            os.kill(pid, signal.SIGKILL)
        failed = (
            "SELECT FROM cerebro.config WHERE run_id > %s AND mst_key = 2 AND status = 'failed'"
        )
        return bool(watcher.rows(failed, before))

    with fresh.fitting("packed", "unlucky", "long", 1, workers=2) as fitted:
        eventually(kill_config_2)
        run = fitted.result()
    attempts = bench.rows(
        "SELECT attempt, status FROM cerebro.visit WHERE run_id = %s AND mst_key = 2 ORDER BY 1",
        run,
    )
    assert attempts == [(1, "failed"), (2, "failed"), (3, "failed")]
    assert bench.rows("SELECT mst_key, model_weights IS NULL FROM unlucky ORDER BY 1") == [
        (1, False),
        (2, True),
    ]


def packing(session: Workbench) -> None:
    session.rows(
        "CREATE TEMP TABLE many AS"
        " SELECT array_fill(1.0, ARRAY[64])::real[] AS x, 1 AS y FROM generate_series(1, 400000)"
    )
    session.rows("SELECT training_preprocessor_dl('many', 'never', 'y', 'x')")


def evaluation(session: Workbench) -> None:
    session.rows("CREATE TABLE buffers AS SELECT p.* FROM packed p, generate_series(1, 5000)")
    session.rows("CREATE TABLE buffers_summary AS SELECT * FROM packed_summary")
    session.rows("CREATE TEMP SEQUENCE number")
    session.rows("UPDATE buffers SET buffer_id = nextval('number')")
    session.rows("SELECT madlib_evaluate('model', 'buffers', 'never', mst_key => 1)")


def prediction(session: Workbench) -> None:
    session.rows(
        "CREATE TABLE IF NOT EXISTS crowd AS SELECT n AS id, p.x FROM points p, "
        "generate_series(1, 20000) n"
    )
    session.rows("SELECT madlib_predict('model', 'crowd', 'id', 'x', 'never', mst_key => 1)")


def start_up(session: Workbench) -> None:
    session.fit("packed", "never", "long", 100_000)


@pytest.mark.long_for(work=(start_up, packing))
@pytest.mark.parametrize(
    "work", [start_up, packing, evaluation, prediction], ids=lambda work: work.__name__
)
def test_other_calls_end_at_once_when_cancelled(
    bench: Workbench, watcher: Workbench, fresh: Workbench, work: Callable[[Workbench], None]
) -> None:
    if not bench.exists("model"):
        bench.configure("one", several(1))
        bench.fit("packed", "model", "one", 1)
    waiting = trainers(watcher.workers() | {bench.pid()})
    backend = fresh.pid()

    def busy() -> bool:
        return bool(trainers(watcher.workers() | watcher.serving(backend)) - waiting)

    with fresh.calling(lambda: work(fresh)) as called:
        eventually(busy)
        watcher.rows("SELECT pg_cancel_backend(%s)", backend)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            called.result()
    eventually(lambda: not busy())
    assert not bench.exists("never", "never_summary")


@pytest.mark.long
def test_a_call_ends_when_its_client_is_gone(bench: Workbench, watcher: Workbench) -> None:
    bench.configure("endless", several(2), ["batch_size=1,epochs=1000"])
    before, waiting = bench.last_run_id(), trainers(watcher.workers())
    call = "SELECT madlib_fit_multiple_model('packed', 'never', 'endless', 100000)"
    with subprocess.Popen(
        ["psql", "--quiet", "--command", call, bench.url], stderr=subprocess.DEVNULL
    ) as client:
        eventually(
            lambda: watcher.rows(
                "SELECT FROM cerebro.visit WHERE run_id > %s AND status = 'running'", before
            )
        )
        client.kill()
    eventually(lambda: trainers(watcher.workers()) <= waiting)
    status = "SELECT status FROM cerebro.run WHERE run_id > %s"
    eventually(lambda: watcher.rows(status, before) == [("cancelled",)])
    assert not bench.exists("never")
