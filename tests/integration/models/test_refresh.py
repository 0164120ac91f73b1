"""A model learns of the rows that have come since, and predicts with what it learned only where
that is better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg2
import pytest
from processes import eventually
from roles import refused
from workbench import Workbench

pytestmark = pytest.mark.long

ORDERS = """
    CREATE TABLE orders (id integer PRIMARY KEY, entered date, size real, shop text, comes text);
    CREATE FUNCTION more(low integer, high integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO orders SELECT n, date '2020-01-01' + n, n * 7919 % 1000 / 100.0, (ARRAY['a', 'b',
        NULL])[n % 3 + 1],
                              (ARRAY['early', 'late', 'never'])[n * 7919 % 1000 / 334 + 1]
    FROM generate_series(low, high) n $$;
    SELECT more(1, 400)"""
STATES = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND "
    "relkind = 'r'"
)
VERSIONS = "SELECT version, run_id, value FROM cerebro.model_version ORDER BY version"


@pytest.fixture(scope="module")
def orders(bench: Workbench) -> Iterator[str]:
    """The name of a model, and of its table."""
    bench.rows(ORDERS)
    options = (
        "columns => 'size, shop', models => '{realmlp_simple}', configs => 2, epochs => 12, "
        "metric => 'log_loss'"
    )
    bench.rows(
        f"SELECT * FROM cerebro.train('orders', 'comes', 'orders', {options}, seed => 3, "
        "refit => 'none')"
    )
    yield "orders"
    bench.rows("SELECT cerebro.drop_model('orders')")


def left(bench: Workbench) -> tuple[object, ...]:
    """What a call leaves behind."""
    return sorted(bench.rows(STATES)), bench.newest_run(), bench.rows(VERSIONS)


def test_what_cannot_be_refreshed_is_refused_and_leaves_nothing(
    bench: Workbench, orders: str
) -> None:
    before = left(bench)
    wrong = {
        "NULL": "22004",
        "'nobody'": "42704",
        "'orders', 'when'": "42703",
        "'orders', 'id, size'": "42703",
    }
    for arguments, sqlstate in wrong.items():
        refused(
            bench,
            f"SELECT * FROM cerebro.refresh({arguments})",
            code=sqlstate,
            words="refresh error",
        )
    changes = {
        "ADD place point": ("'orders', 'place'", "DROP place", "42804"),
        "RENAME size TO extent": ("'orders'", "RENAME extent TO size", "42703"),
        "ALTER size TYPE text": ("'orders'", "ALTER size TYPE real USING size::real", "42804"),
    }
    for change, (arguments, back, sqlstate) in changes.items():
        bench.rows(f"ALTER TABLE orders {change}")
        error = refused(
            bench,
            f"SELECT * FROM cerebro.refresh({arguments})",
            code=sqlstate,
            words="refresh error",
        )
        is_undone = arguments == "'orders'"
        assert str(error.diag.message_hint).startswith("Undo the change of ") is is_undone
        bench.rows(f"ALTER TABLE orders {back}")
    bench.rows("CREATE TABLE kept AS TABLE orders")
    bench.rows("BEGIN; UPDATE orders SET size = 0")
    refused(bench, "SELECT * FROM cerebro.refresh('orders')", code="25001", words="refresh error")
    bench.rows("ROLLBACK")
    for gone, sqlstate in (("comes = 'late'", "55000"), ("true", "22023")):
        bench.rows(f"UPDATE orders SET comes = NULL WHERE {gone}")
        refused(
            bench, "SELECT * FROM cerebro.refresh('orders')", code=sqlstate, words="refresh error"
        )
    bench.rows("TRUNCATE orders; INSERT INTO orders TABLE kept")
    assert left(bench) == before


def test_nothing_is_done_where_no_rows_are_new(bench: Workbench, orders: str) -> None:
    before = left(bench)
    assert not bench.rows("SELECT * FROM cerebro.refresh('orders')")
    assert not bench.rows("SELECT * FROM cerebro.refresh('orders', 'entered')")
    assert left(bench) == before


def test_new_rows_are_learned_from_the_weights_on(bench: Workbench, orders: str) -> None:
    """By the recipe of before, with as little effort as is said; and what comes out can be proved
    like any version.
    """
    workers = """
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'cerebro_db%worker'"""
    before, session = {*bench.rows(workers)}, bench.another()
    bench.rows("SELECT more(401, 440)")
    found = session.row("SELECT * FROM cerebro.refresh('orders', since => 'entered')")
    if not bench.greenplum:  # whose sessions that rest have another name
        assert len({*bench.rows(workers)} - before) == 1, (
            "the trainer of the run is asked for both versions"
        )
    assert re.match(r"NOTICE:  0 s of \d+ s: looking at the table\n", session.messages()[0])
    session.close()
    run_id, version, deployed, metric, value, training, validation = found
    assert (version, metric, training + validation) == (2, "log_loss", 440)
    (_, first, _), last = bench.rows(VERSIONS)
    assert last == (2, run_id, value)
    assert bench.value("SELECT version FROM cerebro.model") == (2 if deployed else 1)
    distinct = "count(DISTINCT (place, column_name, kind, constants))"
    features = f"SELECT {distinct}, count(*) FROM cerebro.feature"
    different, rows = bench.row(features)
    assert rows == 2 * different
    assert bench.row("SELECT epochs, status FROM cerebro.run WHERE run_id = %s", run_id) == (
        2,
        "completed",
    )
    assert rate(bench, run_id) == pytest.approx(0.3 * rate(bench, first))
    assert all(ok for (ok,) in bench.rows("SELECT ok FROM cerebro.verify('orders', '2')"))
    # How far the column has come is known now: other rows are not looked at.
    bench.rows("UPDATE orders SET size = 1 WHERE id = 7")
    assert not bench.rows("SELECT * FROM cerebro.refresh('orders', since => 'entered')")
    bench.rows("UPDATE orders SET size = 7 * 7919 % 1000 / 100.0 WHERE id = 7")


def test_new_rows_are_packed_beside_the_others(bench: Workbench, orders: str) -> None:
    """They are the rows that all would be packed as; those of before lie as they lay."""
    (_, first, _), (_, second, _) = bench.rows(VERSIONS)
    for side, column in (("training", "training_rows"), ("validation", "validation_rows")):
        (old, then), (new, now) = (packed(bench, run_id, side) for run_id in (first, second))
        counted: dict[int, int] = dict(
            bench.rows(f"SELECT run_id, {column} FROM cerebro.model_version")
        )
        assert (then, now) == (counted[first], counted[second]) and then < now
        assert old == new[: len(old)] and len(new) > len(old)
    assert not bench.rows("SELECT * FROM cerebro.refresh('orders')"), (
        "the fingerprint is that of all rows"
    )
    assert not [name for (name,) in bench.rows(STATES) if "more" in name]


def packed(bench: Workbench, run_id: int, side: str) -> tuple[list[object], int]:
    """The buffers of a side, in their order, and how many rows they have."""
    columns = "__dist_key__, numbers, codes, label, numbers_shape, buffer_id"
    rows = bench.rows(f'SELECT {columns} FROM cerebro_state."r{run_id}_{side}" ORDER BY buffer_id')
    return [
        [bytes(each) if isinstance(each, memoryview) else each for each in row] for row in rows
    ], sum(row[4][0] for row in rows)


def test_what_was_packed_beside_others_is_not_packed_anew_for_a_proof(
    bench: Workbench, orders: str
) -> None:
    run_id = bench.rows(VERSIONS)[-1][1]
    bench.rows(
        f'DROP TABLE cerebro_state."r{run_id}_training", cerebro_state."r{run_id}_training_summary"'
    )
    found = {
        what: (ok, detail)
        for what, ok, detail in bench.rows(
            "SELECT what, ok, detail FROM cerebro.verify('orders', '2')"
        )
    }
    assert found["source"][0] and not found["packed rows"][0] and not found["state"][0]
    assert "beside" in found["state"][1]


def rate(bench: Workbench, run_id: int) -> float:
    """The highest learning rate of the configuration that a run's version is of."""
    config = (
        "SELECT compile_params FROM cerebro.config JOIN cerebro.model_version USING (run_id, "
        "mst_key)"
    )
    text = bench.value(f"{config} WHERE run_id = %s", run_id)
    return float(str(text).split("'warmup_target': ")[1].split(",")[0])


@pytest.mark.long
def test_a_cancelled_refresh_is_resumed(bench: Workbench, orders: str) -> None:
    before, watcher = bench.last_run_id(), bench.another()
    bench.rows("SELECT more(1001, 5000)")
    visits = "SELECT count(*) > 0 FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    refresh = "SELECT * FROM cerebro.refresh('orders', epochs => 40)"
    with bench.calling(lambda: bench.rows(refresh)) as called:
        eventually(lambda: watcher.value(visits, before))
        run_id = watcher.newest_run()
        watcher.rows("SELECT cerebro.cancel(%s)", run_id)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            called.result(60)
    watcher.close()
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run_id) == "cancelled"
    bench.rows("SELECT cerebro.resume(%s)", run_id)
    assert (
        bench.value("SELECT run_id FROM cerebro.model_version ORDER BY version DESC LIMIT 1")
        == run_id
    )
    assert all(ok for (ok,) in bench.rows("SELECT ok FROM cerebro.verify('orders', 'newest')"))
