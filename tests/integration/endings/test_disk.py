"""What a run takes on disk is bounded by what it trains and not by how long, even while nothing can
be vacuumed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from models import dense, sequential
from workbench import Workbench, compile_text

from cerebro_plpy.platform import state_tables

pytestmark = pytest.mark.long

WIDE = sequential([4], dense(400, "one"), dense(400, "two"), dense(3, "output", "softmax"))
CONFIGS, EPOCHS, SEGMENTS, WORKERS = 4, 20, 2, 2
TABLES = """SELECT c.relname FROM pg_class c
            WHERE relnamespace = 'cerebro_state'::regnamespace AND c.relname LIKE 'r%' ORDER BY 1"""

RENEWED = state_tables.MAX_STATES * state_tables.HOPPING  # visits


@pytest.fixture
def long_snapshot(bench: Workbench) -> Iterator[None]:
    """Somebody whose report takes long: no row that was deleted since can be removed."""
    session = bench.another()
    session.rows("BEGIN ISOLATION LEVEL REPEATABLE READ")
    session.rows("SELECT count(*) FROM points")
    yield
    session.close()


def disk(session: Workbench) -> int:
    """Bytes of everything in the database, catalogs and indexes included."""
    return int(session.value("SELECT pg_database_size(current_database())"))


@pytest.mark.usefixtures("long_snapshot")
def test_what_a_run_takes_is_bounded_by_its_states(bench: Workbench) -> None:
    optimizers = [compile_text(f"Adam(learning_rate=0.00{n})") for n in range(1, CONFIGS + 1)]
    bench.configure("wide", optimizers, model=bench.model(WIDE))
    before, watcher = disk(bench), bench.another()
    bench.pack("packed", SEGMENTS)
    packed = disk(bench) - before
    with bench.fitting(
        "packed", "model", "wide", EPOCHS, workers=WORKERS, metrics_compute_frequency=5
    ) as fitted:
        taken = [disk(watcher)]
        while not fitted.done():
            taken.append(disk(watcher))
    run = fitted.result()
    watcher.close()
    assert (
        bench.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run)
        == CONFIGS * EPOCHS * SEGMENTS
    )
    states = bench.value(
        "SELECT sum(state_bytes) FROM cerebro.visit WHERE run_id = %s AND visit_no = %s",
        run,
        EPOCHS * SEGMENTS,
    )
    assert states > CONFIGS << 20
    # The two tables of each configuration, and the output, written while others train, which has
    # its state and its weights. On Greenplum either table may hold a state of each segment; each
    # worker has a table to which one hops.
    times = 2 * SEGMENTS + 1 + WORKERS / CONFIGS if bench.greenplum else 4
    assert max(*taken, disk(bench)) - before <= packed + times * float(states)


@pytest.mark.usefixtures("long_snapshot")
def test_state_tables_are_made_anew_in_time(bench: Workbench) -> None:
    bench.pack("halves", 2)
    bench.configure("one", [compile_text()])
    before = {name for (name,) in bench.rows(TABLES)}
    # Between two workers: those that one makes in a row may leave one state.
    run = bench.fit(
        "halves", "often", "one", RENEWED // 2 + 5, schedule="rotation", seed=3, workers=2
    )
    tables = bench.rows(
        "SELECT state_table, min(visit_no), max(visit_no), count(*) FROM cerebro.visit WHERE "
        "run_id = %s GROUP BY state_table ORDER BY 2",
        run,
    )
    assert [row[1:] for row in tables] == [
        (1, RENEWED - 1, RENEWED // 2),
        (2, RENEWED - 2, RENEWED // 2 - 1),
        (RENEWED, RENEWED + 10, 6),
        (RENEWED + 1, RENEWED + 9, 5),
    ]
    kept = bench.value("SELECT state_tables FROM cerebro.config WHERE run_id = %s", run)
    assert kept == [tables[2][0]], "that with the newest state"
    assert len({name for (name,) in bench.rows(TABLES)} - before) == 1
    assert (
        bench.value("SELECT epochs FROM cerebro.config WHERE run_id = %s", run) == RENEWED // 2 + 5
    )
