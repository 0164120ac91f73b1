"""Values of the caller's session alone: a source whose rows depend on them is refused, and columns
are told of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from custom_settings import create_functions
from roles import another_role, own_schema, refused
from workbench import Workbench

ROLE = "dependent"
COLUMNS = {
    "application_name": "current_setting('application_name')",
    "pg_backend_pid()": "pg_backend_pid()",
    "inet_client_addr()": "1 + length(inet_client_addr()::text)",
    "inet_client_port()": "inet_client_port() > 1000",
    "pg_my_temp_schema()": "pg_my_temp_schema()",
    "lastval()": "lastval()",
}
HARMLESS = (
    "txid_current()",
    "'pg_backend_pid()'::text AS \"inet_client_addr()\"",
    "current_setting('app.tenant_id', true)",
    "current_user, random(), now()",
)


@pytest.fixture(scope="module")
def person(bench: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A session of a role that owns a schema and a table in it, and reads one of the
    superuser's.
    """
    create_functions(bench)
    with another_role(bench, shared_superuser, ROLE) as session:
        own_schema(shared_superuser, ROLE)
        session.rows(f"SET search_path = {ROLE}, public")
        session.rows("CREATE TABLE plain (a int, b text); CREATE SEQUENCE numbers")
        shared_superuser.rows("CREATE TABLE public.guarded (a int, b text)")
        shared_superuser.rows("ALTER TABLE public.guarded ENABLE ROW LEVEL SECURITY")
        shared_superuser.rows(f"GRANT SELECT ON public.guarded TO {ROLE}")
        yield session


@pytest.fixture
def notices(person: Workbench) -> Iterator[list[str]]:
    """What the person is told."""
    person.messages()
    yield person.connection.notices
    person.rows(
        "DROP VIEW IF EXISTS outermost, v; DROP FUNCTION IF EXISTS helper(text, text) CASCADE"
    )


def check(session: Workbench, source: str) -> None:
    """Check a source for training in another session."""
    session.rows("SELECT public.check_dependencies(%s)", source)


@pytest.mark.parametrize("value", COLUMNS)
@pytest.mark.parametrize("depth", ["source", "behind"])
def test_columns_of_a_view_are_told_of(
    person: Workbench, notices: list[str], value: str, depth: str
) -> None:
    person.rows(
        f"CREATE VIEW v AS SELECT a, {COLUMNS[value]} AS c FROM plain WHERE a > 1 ORDER BY b"
    )
    person.rows("CREATE VIEW outermost AS SELECT * FROM v WHERE a < 7")
    check(person, "v" if depth == "source" else "outermost")
    (notice,) = notices
    assert f"view {ROLE}.v has values of {value}" in notice


@pytest.mark.parametrize("value", COLUMNS)
def test_conditions_of_a_view_are_refused(
    person: Workbench, notices: list[str], value: str
) -> None:
    person.rows(f"CREATE VIEW v AS SELECT a FROM plain WHERE b = ({COLUMNS[value]})::text")
    person.rows("CREATE VIEW outermost AS SELECT * FROM v")
    for source in ("v", "outermost"):
        error = refused(
            person, "SELECT public.check_dependencies(%s)", source, code="0A000", words=value
        )
        assert f"view {ROLE}.v depends on" in str(error) and "CREATE TABLE copy AS" in str(
            error.diag.message_hint
        )
    assert not notices


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT pg_backend_pid() FROM plain",
        "SELECT count(*) FROM plain GROUP BY pg_backend_pid()",
        "SELECT a FROM plain UNION SELECT pg_backend_pid()",
        "SELECT a FROM plain ORDER BY pg_backend_pid() LIMIT 1",
        "SELECT max(pg_backend_pid()) FROM plain",
        "SELECT a FROM plain JOIN generate_series(1, pg_backend_pid()) g ON g = a",
        "SELECT generate_series(1, pg_backend_pid())",
        "SELECT a FROM (SELECT a, pg_backend_pid() AS p FROM plain) s WHERE p > 1",
        "WITH s AS (SELECT pg_backend_pid() AS p) SELECT a FROM plain, s WHERE p > 1",
    ],
)
def test_columns_that_decide_rows_are_refused(
    person: Workbench, notices: list[str], query: str
) -> None:
    person.rows(f"CREATE VIEW v AS {query}")
    refused(person, "SELECT public.check_dependencies('v')", code="0A000", words="pg_backend_pid()")


@pytest.mark.parametrize("columns", HARMLESS)
def test_what_any_session_shares_is_no_matter(
    person: Workbench, notices: list[str], columns: str
) -> None:
    person.rows(f"CREATE VIEW v AS SELECT {columns} FROM plain WHERE b <> 'application_name'")
    check(person, "v")
    assert not notices


PLACES = {
    "column": "SELECT helper(b, b) FROM plain",
    "condition": "SELECT a FROM plain WHERE helper(b, b)",
    "operator": f"SELECT a FROM plain WHERE b OPERATOR({ROLE}.===) b",
}


@pytest.mark.parametrize("place", PLACES)
def test_functions_of_a_view(person: Workbench, notices: list[str], place: str) -> None:
    body = "SELECT Inet_Client_Addr ()::text = $1"
    person.rows(f"CREATE FUNCTION helper(text, text) RETURNS boolean LANGUAGE sql AS $$ {body} $$")
    person.rows("CREATE OPERATOR === (FUNCTION = helper, LEFTARG = text, RIGHTARG = text)")
    person.rows(f"CREATE VIEW v AS {PLACES[place]}")
    if place == "column":
        check(person, "v")
        assert f"function {ROLE}.helper(text,text) has values of inet_client_addr()" in notices[0]
    else:
        words = f"{ROLE}.helper(text,text) depends on"
        refused(person, "SELECT public.check_dependencies('v')", code="0A000", words=words)


def test_policies_that_apply_are_refused(
    person: Workbench, shared_superuser: Workbench, notices: list[str]
) -> None:
    shared_superuser.rows(
        "CREATE POLICY by_name ON public.guarded USING (b = current_setting('application_name'));"
        "CREATE POLICY of_writers ON public.guarded FOR INSERT WITH CHECK (a = pg_backend_pid());"
        "CREATE VIEW public.seen AS SELECT * FROM public.guarded; GRANT SELECT ON public.seen TO "
        f"{ROLE}"
    )
    words = "policy by_name of public.guarded depends on application_name"
    refused(person, "SELECT public.check_dependencies('public.guarded')", code="0A000", words=words)
    # The view reads the table as its owner, whom no policy limits.
    check(person, "public.seen")
    check(shared_superuser, "public.guarded")
    with closing(shared_superuser.another()) as administrator:
        administrator.rows("DROP VIEW public.seen; DROP POLICY by_name ON public.guarded")
    check(person, "public.guarded")
    assert not notices


def test_a_policy_over_a_temporary_table(
    person: Workbench, shared_superuser: Workbench, notices: list[str]
) -> None:
    shared_superuser.rows(
        "CREATE TEMPORARY TABLE mine (a int);"
        "CREATE POLICY temporary ON public.guarded USING (a IN (SELECT m.a FROM pg_temp.mine m))"
    )
    refused(
        person,
        "SELECT public.check_dependencies('public.guarded')",
        code="0A000",
        words="mine: the session that",
    )
    shared_superuser.rows("DROP TABLE mine CASCADE")
    check(person, "public.guarded")
