"""Sessions whose transactions are serializable, read only or short by default: hints lead out."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from followed_hints import Call, error_of, follow, read_hint, read_ways
from processes import eventually
from workbench import Workbench

STOCK = """
    CREATE TABLE stock AS SELECT n AS id, n % 17 AS x, n % 17 > 8 AS y FROM
        generate_series(1, 300) n;
    ALTER TABLE stock ADD PRIMARY KEY (id)"""
SMALL = {"models": "'{linear}'", "configs": "1", "epochs": "1", "ensemble": "1", "seed": "1"}
TRAIN = Call("cerebro.train", {"source": "'stock'", "target": "'y'", "model": "'stocked'", **SMALL})
REFUSED = {
    "train": (TRAIN._replace(arguments={**TRAIN.arguments, "target": "'gone'"}), "42703"),
    "refresh": (Call("cerebro.refresh", {"model": "'gone'"}), "42704"),
}
"""Calls with the SQLSTATE that they end with once their transaction is accepted."""
DEFAULTS = {
    "serializable": (
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "25001",
        "SET default_transaction_isolation = 'read committed'; then call again, after COMMIT in a "
        "transaction block.",
    ),
    "repeatable read": (
        "SET default_transaction_isolation = 'repeatable read'",
        "25001",
        "SET default_transaction_isolation = 'read committed'; then call again, after COMMIT in a "
        "transaction block.",
    ),
    "read only": (
        "SET default_transaction_read_only = on",
        "25006",
        "SET default_transaction_read_only = off; then call again, after COMMIT in a transaction "
        "block.",
    ),
}
"""Defaults with the SQLSTATE and the hint of a call under them."""
BACKGROUND = "{} Or let another session work: background => true."


@pytest.fixture(scope="module")
def stock(bench: Workbench) -> Workbench:
    bench.rows(STOCK)
    return bench


@pytest.fixture
def session(stock: Workbench) -> Iterator[Workbench]:
    """Another session, whose defaults a test changes; no run goes on when it is over."""
    other = stock.another()
    yield other
    other.connection.close()
    running = "SELECT count(*) FROM cerebro.run WHERE status NOT IN ('completed', 'cancelled')"
    eventually(lambda: not stock.value(running))


@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("function", REFUSED)
def test_the_defaults_of_a_session_can_be_left(
    session: Workbench, default: str, function: str
) -> None:
    statement, sqlstate, template = DEFAULTS[default]
    call, accepted = REFUSED[function]
    session.rows(statement)
    error = error_of(session, call)
    assert error is not None and error.pgcode == sqlstate
    ways = read_ways(read_hint(error, template))
    assert len(ways) == 1 + (function == "train" and sqlstate == "25001")
    if len(ways) > 1:
        read_hint(error, BACKGROUND)
    for way in ways:
        session.rows(statement)
        for step in way.statements:
            session.rows(step)
        error = error_of(session, way.change(call))
        assert error is not None and error.pgcode == accepted


@pytest.mark.parametrize(
    ("beginning", "sqlstate", "template"),
    [
        (
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "25001",
            "ROLLBACK; then call outside a transaction, or after BEGIN ISOLATION LEVEL READ "
            "COMMITTED.",
        ),
        (
            "BEGIN READ ONLY",
            "25006",
            "ROLLBACK; then call outside a transaction, or after BEGIN READ WRITE.",
        ),
    ],
)
def test_a_transaction_of_another_kind_is_ended(
    session: Workbench, beginning: str, sqlstate: str, template: str
) -> None:
    call, accepted = REFUSED["refresh"]
    session.rows(beginning)
    error = error_of(session, call)
    assert error is not None and error.pgcode == sqlstate
    (way,) = read_ways(read_hint(error, template))
    assert way.statements == ("ROLLBACK;",)
    session.rows("".join(way.statements))
    error = error_of(session, call)
    assert error is not None and error.pgcode == accepted


def test_a_timeout_of_statements_says_how_to_go_on(session: Workbench) -> None:
    """It ends the call before its run is logged, or after; either hint works."""
    assert error_of(session, REFUSED["train"][0])  # later calls import nothing
    session.rows("SET statement_timeout = '300ms'")
    error = error_of(session, TRAIN)
    assert error is not None and error.pgcode == "57014"
    hint = error.diag.message_hint or ""
    assert hint.startswith("statement_timeout is 300ms.")
    first, second = read_ways(hint)
    assert first.statements[0] == "SET statement_timeout = 0;"
    assert second.arguments == {"background": "true"}
    for step in first.statements:
        session.rows(step)
    assert session.rows(str(second.change(TRAIN)))
    session.rows("SELECT cerebro.cancel(max(run_id)) FROM cerebro.run")


def test_a_plan_that_took_too_long_is_called_again(session: Workbench) -> None:
    session.rows(
        "CREATE VIEW slow AS SELECT t.* FROM stock t, LATERAL pg_sleep(CASE id WHEN 1 THEN 1 ELSE "
        "0 END)"
    )
    call = Call("cerebro.plan", {"source": "'slow'", "target": "'y'", **SMALL})
    assert error_of(session, call._replace(arguments={**call.arguments, "target": "'gone'"}))
    session.rows("SET statement_timeout = '900ms'")
    template = "statement_timeout is {}. SET statement_timeout = 0; then call again."
    read_hint(error_of(session, call), template)
    (rows,) = follow(session, call)
    assert rows


def test_a_cancel_has_no_hint_about_timeouts(session: Workbench, stock: Workbench) -> None:
    session.rows("SET statement_timeout = '1h'")
    session.rows("CREATE VIEW endless AS SELECT t.* FROM stock t, LATERAL pg_sleep(60)")
    pid = session.pid()
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
    call = "SELECT * FROM cerebro.plan('endless', 'y')"
    with session.calling(lambda: session.rows(call)) as waiting:
        eventually(lambda: stock.value(sleeping, pid))
        stock.rows("SELECT pg_cancel_backend(%s)", pid)
        with pytest.raises(psycopg2.errors.QueryCanceled) as cancelled:
            waiting.result()
    assert not cancelled.value.diag.message_hint
