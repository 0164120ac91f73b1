"""What other sessions see of a call of `cerebro.train` before its run is in the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
from processes import eventually
from roles import another_role
from workbench import Workbench

SHOWN = """
    SELECT p.phase, p.status, p.owner::text, p.share, p.visits_total FROM cerebro.progress p
    WHERE p.run_id > %s"""
RUNS = "SELECT FROM cerebro.run WHERE run_id > %s"
TRAIN = (
    "SELECT status FROM cerebro.train('pebbles', 'y', models => '{linear}', configs => 1, "
    "epochs => 3, ensemble => 1, seed => 1, refit => 'none')"
)
PHASES = [
    "looking at the table",
    "packing",
    "starting trainers",
    "compiling",
    "training",
    "choosing the best",
    "explaining",
]


@pytest.fixture(scope="module")
def pebbles(bench: Workbench) -> Workbench:
    bench.rows(
        "CREATE TABLE pebbles AS SELECT n AS x, n % 2 = 0 AS y FROM generate_series(1, 90) n"
    )
    return bench


@pytest.fixture
def watcher(bench: Workbench) -> Iterator[Workbench]:
    with closing(bench.another()) as session:
        yield session


def test_a_call_that_waits_for_its_table_is_shown_and_leaves_nothing(
    pebbles: Workbench, watcher: Workbench, shared_superuser: Workbench
) -> None:
    before = watcher.last_run_id()
    with closing(pebbles.another()) as holder, pytest.raises(psycopg2.errors.QueryCanceled):
        holder.rows("BEGIN; LOCK TABLE pebbles")
        with pebbles.calling(lambda: pebbles.rows(TRAIN)) as called:
            shown = ("looking at the table", "running", "cerebro", 0.0, 0)
            eventually(lambda: watcher.rows(SHOWN, before) == [shown])
            assert watcher.rows(RUNS, before) == []
            with another_role(pebbles, shared_superuser, "looker-on") as stranger:
                assert stranger.rows(SHOWN, before) == []
            pebbles.connection.cancel()
            called.result()
    eventually(lambda: not watcher.rows(SHOWN, before))


def test_a_run_is_shown_from_its_table_to_its_end(pebbles: Workbench, watcher: Workbench) -> None:
    """In its phases, in their order, without a gap."""
    before = watcher.last_run_id()
    phases: list[str | None] = []
    shares: list[float] = []
    with closing(pebbles.another()) as holder:
        holder.rows("BEGIN; LOCK TABLE pebbles")
        with pebbles.calling(lambda: pebbles.rows(TRAIN)) as called:
            eventually(lambda: watcher.rows(SHOWN, before))
            holder.rows("COMMIT")

            def look() -> bool:
                is_over = called.done()
                ((phase, _, _, share, _),) = watcher.rows(SHOWN, before)
                phases.append(phase)
                shares.append(share)
                return is_over

            eventually(look)
            assert called.result() == [("completed",)]
    assert (phases[-1], shares[-1]) == (None, 1), "the call is over"
    assert phases[0] == "looking at the table"
    assert "training" in phases
    steps = [PHASES.index(phase) for phase in phases if phase is not None]
    assert steps == sorted(steps)
    assert all(0 <= share <= 1 for share in shares)
