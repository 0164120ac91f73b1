"""The value of a custom setting may be a secret: the caller's calls leave it in no table, log,
statement or title.

They read the rows that the caller sees by it, in every session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

import pytest
from processes import eventually
from psycopg2.extensions import make_dsn
from roles import another_role, own_schema, refused
from secrets_of_sessions import everything_logged, lines_with, log_file, tables_with, watching
from workbench import Workbench

ROLE, MARKER = "keeps_secrets", "marker0x5ec2e7"
OWN_ROWS = 400
"""Of 1,000, those that a session with the marker sees."""
SOURCE = f"""
    CREATE SCHEMA secrets_shop; GRANT USAGE ON SCHEMA secrets_shop TO {ROLE};
    CREATE TABLE secrets_shop.sales AS
        SELECT n AS id, n * 7919 % 101 AS x, n * 7919 % 101 > 50 AS y,
               md5(CASE WHEN n <= {OWN_ROWS} THEN '{MARKER}' ELSE 'of nobody' END) AS tenant
        FROM generate_series(1, 1000) n;
    CREATE TABLE secrets_shop.switch AS SELECT 1 AS one;
    ALTER TABLE secrets_shop.sales ENABLE ROW LEVEL SECURITY;
    CREATE POLICY tenants ON secrets_shop.sales
        USING (tenant = md5(coalesce(nullif(current_setting('app.secret', true), ''),
            'of nobody')));
    GRANT ALL ON ALL TABLES IN SCHEMA secrets_shop TO {ROLE};
    CREATE VIEW secrets_shop.faulty WITH (security_barrier) AS
        SELECT id, x / (SELECT one FROM secrets_shop.switch) AS x, y FROM secrets_shop.sales;
    ALTER VIEW secrets_shop.faulty OWNER TO {ROLE}"""
pytestmark = pytest.mark.postgresql("the log of the tests' own server is read")
QUICK = "models => '{linear}', configs => 1, ensemble => 1, seed => 1, workers => 1, columns => 'x'"


class Scene(NamedTuple):
    """A session that keeps a secret, the superuser's, and where the log was when it began."""

    session: Workbench
    superuser: Workbench
    begin: int


@pytest.fixture(scope="module")
def scene(bench: Workbench, shared_superuser: Workbench) -> Iterator[Scene]:
    """The secret is a startup option: the session itself says it nowhere."""
    begin = log_file().stat().st_size
    with another_role(bench, shared_superuser, ROLE) as unmarked:
        own_schema(shared_superuser, ROLE)
        shared_superuser.rows(SOURCE)
        with everything_logged(shared_superuser):
            options = f"-c app.secret={MARKER} -c search_path={ROLE},secrets_shop,madlib"
            with closing(Workbench(make_dsn(unmarked.url, options=options))) as session:
                session.rows("CREATE VIEW learned AS SELECT id, x, y FROM secrets_shop.sales")
                yield Scene(session, shared_superuser, begin)
        shared_superuser.rows("DROP SCHEMA secrets_shop CASCADE")


def train(session: Workbench, source: str, epochs: int, background: bool = False) -> int:
    """Train model `secret`; the id of the run."""
    call = f"cerebro.train(%s, 'y', 'secret', epochs => %s, background => %s, {QUICK})"
    return int(session.value(f"SELECT max(run_id) FROM {call}", source, epochs, background))


def wait(session: Workbench, run: int) -> str:
    return str(session.value("SELECT cerebro.wait(%s)", run))


def learned_rows(session: Workbench, run: int) -> int:
    """Return how many rows the version of a run has learned from or held back."""
    return int(
        session.value(
            "SELECT training_rows + validation_rows FROM cerebro.model_version WHERE run_id = %s",
            run,
        )
    )


def call(scene: Scene) -> None:
    session = scene.session
    assert learned_rows(session, train(session, "learned", 2)) == OWN_ROWS
    assert session.value("SELECT count(*) FROM cerebro.predict('secret', 'learned')") == OWN_ROWS
    session.rows("SELECT * FROM cerebro.evaluate('secret', 'learned')")
    session.rows("SELECT * FROM cerebro.plan('learned', 'y')")


def call_in_the_background(scene: Scene) -> None:
    run = train(scene.session, "learned", 2, background=True)
    assert wait(scene.session, run) == "completed"
    assert learned_rows(scene.session, run) == OWN_ROWS


def resume(scene: Scene) -> None:
    session = scene.session
    run = train(session, "learned", 100_000, background=True)
    eventually(
        lambda: session.value("SELECT count(*) FROM cerebro.timeline WHERE run_id = %s", run)
    )
    assert not tables_with(scene.superuser, MARKER, "cerebro", "cerebro_state", ROLE)
    assert session.value("SELECT cerebro.cancel(%s)", run)
    assert wait(session, run) == "cancelled"
    session.rows("SELECT cerebro.resume(%s, background => true)", run)
    session.rows("SELECT cerebro.set_epochs(%s, 1)", run)
    assert wait(session, run) == "completed"
    assert learned_rows(session, run) == OWN_ROWS
    refused(session, "SELECT cerebro.resume(%s)", run, code=None)


def fail(scene: Scene) -> None:
    session = scene.session
    train(session, "faulty", 1)
    session.rows("UPDATE secrets_shop.switch SET one = 0")
    try:
        statement = (
            f"SELECT * FROM cerebro.train('faulty', 'y', 'other_secret', epochs => 1, {QUICK})"
        )
        refused(session, statement, code="22012")
        refused(session, "SELECT * FROM cerebro.predict('secret', 'faulty')", code="22012")
        refused(session, "SELECT * FROM cerebro.evaluate('secret', 'faulty')", code="22012")
    finally:
        session.rows("UPDATE secrets_shop.switch SET one = 1")
    run = train(session, "learned", 100_000, background=True)
    eventually(
        lambda: session.value("SELECT count(*) FROM cerebro.timeline WHERE run_id = %s", run)
    )
    pid = session.value("SELECT pid FROM cerebro.run WHERE run_id = %s", run)
    assert scene.superuser.value("SELECT pg_terminate_backend(%s)", pid)
    assert wait(session, run) == "interrupted"


@pytest.mark.parametrize("calls", [call, call_in_the_background, resume, fail])
def test_a_secret_stands_nowhere(scene: Scene, calls: Callable[[Scene], None]) -> None:
    with watching(scene.superuser, MARKER) as watch:
        calls(scene)
        assert scene.session.value("SHOW app.secret") == MARKER
    assert watch.looks and not watch.seen
    assert not tables_with(
        scene.superuser, MARKER, "cerebro", "cerebro_state", "secrets_shop", ROLE
    )
    assert not [
        line for line in lines_with(MARKER, scene.begin) if "CREATE SCHEMA secrets_shop" not in line
    ]
    assert lines_with("cerebro_state", scene.begin), "statements are logged"


def test_a_secret_that_is_said_is_found(scene: Scene) -> None:
    """The looks of the test above do see."""
    session = scene.session
    with watching(scene.superuser, MARKER) as watch:
        session.rows(f"SELECT '{MARKER}'")
        eventually(lambda: watch.seen)
    session.rows("CREATE TABLE texts AS SELECT current_setting('app.secret') AS t")
    session.rows(
        "CREATE TABLE bytes AS SELECT convert_to(current_setting('app.secret'), 'UTF8') AS b"
    )
    try:
        assert tables_with(scene.superuser, MARKER, ROLE) == [f"{ROLE}.bytes", f"{ROLE}.texts"]
    finally:
        session.rows("DROP TABLE texts, bytes")
    assert any(
        "SELECT" in line and "CREATE SCHEMA" not in line for line in lines_with(MARKER, scene.begin)
    )
