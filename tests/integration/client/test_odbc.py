"""Programs that speak ODBC train and predict: with psqlodbc, by statements that have parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import passengers
import pytest
from processes import eventually
from psycopg2 import errorcodes
from sqlalchemy.engine import make_url
from workbench import Workbench

DRIVERS = sorted(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))
try:
    import pyodbc
except ImportError as error:  # the library beneath it comes from Debian
    pytest.skip(f"pyodbc: {error}", allow_module_level=True)
if not DRIVERS:
    pytest.skip("Debian's package odbc-postgresql is not installed", allow_module_level=True)
pytestmark = pytest.mark.postgresql("the driver is the same")


def opened(bench: Workbench, *options: str, autocommit: bool = True) -> pyodbc.Connection:
    url = make_url(bench.url)
    host, port = url.query["host"], url.port
    address = f"SERVER={host};PORT={port};DATABASE={url.database};UID={url.username}"
    return pyodbc.connect(
        ";".join((f"DRIVER={DRIVERS[0]}", address, *options)), autocommit=autocommit
    )


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Iterator[pyodbc.Connection]:
    """A session in which every statement commits, and whose first has trained a model."""
    bench.rows(passengers.TABLE)
    made = opened(bench)
    cursor = made.cursor()
    call = (
        "SELECT * FROM cerebro.train(?, ?, models => ?, configs => ?, epochs => ?, budget => ?, "
        "space => ?)"
    )
    values = ("passengers", "survived", "{linear}", 1, 1, "10 minutes", '{"lr": 0.02}')
    (row,) = cursor.execute(call, *values).fetchall()
    assert row.status == "completed" and json.loads(row.params)["lr"] == 0.02, (
        "parameters need no casts"
    )
    assert cursor.messages and "12 rows have no survived" in cursor.messages[0][1]
    yield made
    made.close()


def test_many_rows_are_those_of_any_session(bench: Workbench, session: pyodbc.Connection) -> None:
    by_parts = opened(bench, "UseDeclareFetch=1", "Fetch=50")
    for each in (session, by_parts):
        found = each.execute(passengers.PREDICT, passengers.MODEL, "passengers", "id").fetchall()
        assert [tuple(row) for row in found] == passengers.predicted(bench)
    by_parts.close()


def test_parameters_of_a_prediction_need_no_casts(session: pyodbc.Connection) -> None:
    told = session.execute(
        "SELECT cerebro.predict_row(?, ?)", passengers.MODEL, passengers.ROW
    ).fetchval()
    assert json.loads(told)["prediction"] in ("true", "false")


def test_arrays_and_truth_values_come_as_texts(
    bench: Workbench, session: pyodbc.Connection
) -> None:
    query = "SELECT segments, status = 'completed' FROM cerebro.run ORDER BY run_id LIMIT 1"
    assert tuple(session.execute(query).fetchone()) == ("{0}", "1")
    other = opened(bench, "BoolsAsChar=0")
    assert tuple(other.execute(query).fetchone()) == ("{0}", True)
    other.close()


def test_a_model_outlives_the_transaction_of_its_call(
    bench: Workbench, session: pyodbc.Connection
) -> None:
    before = passengers.versions(bench)
    other = opened(bench, autocommit=False)
    other.execute(passengers.TRAIN.format(passengers.QUICK), "passengers", "survived").fetchall()
    assert passengers.versions(bench) == before + 1
    other.rollback()
    assert passengers.versions(bench) == before + 1
    other.execute("CREATE TABLE mine AS SELECT * FROM passengers")
    with pytest.raises(pyodbc.Error, match="other sessions cannot use mine") as refused:
        other.execute(passengers.TRAIN.format(passengers.QUICK), "mine", "survived")
    assert refused.value.args[0] == errorcodes.ACTIVE_SQL_TRANSACTION
    other.close()


def test_a_cancelled_statement_cancels_the_run(
    bench: Workbench, session: pyodbc.Connection
) -> None:
    before = bench.last_run_id()
    cursor = session.cursor()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(
            cursor.execute, passengers.TRAIN.format(passengers.LONG), "passengers", "survived"
        )
        try:
            eventually(lambda: passengers.going_on(bench, before))
        finally:
            cursor.cancel()
        with pytest.raises(pyodbc.Error) as cancelled:
            call.result()
    assert cancelled.value.args[0] == errorcodes.QUERY_CANCELED
    query = "SELECT status FROM cerebro.run WHERE run_id > %s"
    assert bench.rows(query, before) == [("cancelled",)]
