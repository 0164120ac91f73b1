"""Programs in Java train and predict: with pgjdbc, by statements that have parameters."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jpype
import passengers
import pytest
from processes import eventually
from psycopg2 import errorcodes
from relay import tcp_port
from sqlalchemy.engine import make_url
from workbench import Workbench

DRIVER = Path("/usr/share/java/postgresql.jar")
pytestmark = [pytest.mark.long, pytest.mark.postgresql("the driver is the same")]
SETTERS = {bool: "setBoolean", int: "setInt", str: "setString"}
# No cast means that the server has to find out by itself of what type a text is.
UNTYPED = "&stringtype=unspecified"


@pytest.fixture(scope="module")
def address(bench: Workbench) -> Iterator[str]:
    """The URL of the bench's database, as Java has it."""
    if not DRIVER.exists():
        pytest.skip("Debian's package libpostgresql-jdbc-java is not installed")
    try:
        jpype.getDefaultJVMPath()
    except jpype.JVMNotFoundException:
        pytest.skip("no Java is installed: Debian's package default-jre-headless")
    if not jpype.isJVMStarted():
        faulthandler.disable()  # the machine of Java lives with faults of its own
        jpype.startJVM("-Xmx128m", "-Xrs", classpath=[str(DRIVER)])
    jpype.JClass("org.postgresql.Driver")
    bench.rows(passengers.TABLE)
    url = make_url(bench.url)
    with tcp_port(f"{url.query['host']}/.s.PGSQL.{url.port}") as port:
        yield f"jdbc:postgresql://127.0.0.1:{port}/{url.database}?user={url.username}"


def opened(address: str) -> Any:
    return jpype.JClass("java.sql.DriverManager").getConnection(address)


def prepared(session: Any, text: str, *values: object) -> Any:
    """A statement that has its parameters."""
    statement = session.prepareStatement(text)
    for place, value in enumerate(values, 1):
        getattr(statement, SETTERS[type(value)])(place, value)
    return statement


def rows(statement: Any) -> list[tuple[Any, ...]]:
    found = statement.executeQuery()
    places = range(1, found.getMetaData().getColumnCount() + 1)
    told = []
    while found.next():
        told.append(tuple(_plain(found.getObject(place)) for place in places))
    return told


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, jpype.java.lang.String) else value


def state(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value.getSQLState())


def warnings(statement: Any) -> Iterator[str]:
    warning = statement.getWarnings()
    while warning is not None:
        yield str(warning.getMessage())
        warning = warning.getNextWarning()


@pytest.fixture(scope="module")
def session(address: str) -> Iterator[Any]:
    """A session in which every statement commits, as is Java's default, and whose first has trained
    a model.
    """
    made = opened(address)
    call = prepared(made, passengers.TRAIN.format(passengers.QUICK), "passengers", "survived")
    (row,) = rows(call)
    assert "completed" in row
    assert "12 rows have no survived, and are left out" in list(warnings(call))
    yield made
    made.close()


def test_many_rows_are_those_of_any_session(bench: Workbench, session: Any, address: str) -> None:
    """Whole, or by parts as a transaction may."""
    told = passengers.predicted(bench)
    assert rows(prepared(session, passengers.PREDICT, passengers.MODEL, "passengers", "id")) == told
    other = opened(address)
    other.setAutoCommit(False)
    statement = prepared(other, passengers.PREDICT, passengers.MODEL, "passengers", "id")
    statement.setFetchSize(50)
    assert rows(statement) == told
    other.close()


def test_texts_need_casts_where_no_text_is_wanted(session: Any, address: str) -> None:
    """Also after so many executions that the server has prepared the statement."""
    call = "SELECT cerebro.predict_row(?, ?)"
    with pytest.raises(jpype.java.sql.SQLException) as refused:
        rows(prepared(session, call, passengers.MODEL, passengers.ROW))
    assert state(refused) == errorcodes.UNDEFINED_FUNCTION
    cast = prepared(
        session, "SELECT cerebro.predict_row(?, ?::jsonb)", passengers.MODEL, passengers.ROW
    )
    untyped = opened(address + UNTYPED)
    (first,) = rows(prepared(untyped, call, passengers.MODEL, passengers.ROW))
    assert [rows(cast) for _ in range(7)] == [[first]] * 7
    named = """SELECT data ->> 'lr' FROM cerebro.plan(
                   ?, ?, models => ?{}, configs => ?, epochs => ?, budget => ?{}, space => ?{})
               WHERE section = 'configuration'"""
    values = ("passengers", "survived", "{linear}", 1, 1, "10 minutes", '{"lr": 0.02}')
    for each, casts in ((session, ("::text[]", "::interval", "::jsonb")), (untyped, ("", "", ""))):
        assert rows(prepared(each, named.format(*casts), *values)) == [("0.02",)]
    untyped.close()


def test_arrays_and_truth_values_are_those_of_java(session: Any) -> None:
    query = "SELECT segments, status = 'completed' FROM cerebro.run ORDER BY run_id LIMIT 1"
    ((segments, completed),) = rows(prepared(session, query))
    assert list(segments.getArray()) == [0] and completed == jpype.java.lang.Boolean(True)


def test_a_cancelled_statement_cancels_the_run(bench: Workbench, session: Any) -> None:
    before = bench.value("SELECT max(run_id) FROM cerebro.run")
    statement = prepared(
        session, passengers.TRAIN.format(passengers.LONG), "passengers", "survived"
    )
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(rows, statement)
        try:
            eventually(lambda: passengers.going_on(bench, before))
        finally:
            statement.cancel()
        with pytest.raises(jpype.java.sql.SQLException) as cancelled:
            call.result()
    assert state(cancelled) == errorcodes.QUERY_CANCELED
    query = "SELECT status FROM cerebro.run WHERE run_id > %s"
    assert bench.rows(query, before) == [("cancelled",)]
