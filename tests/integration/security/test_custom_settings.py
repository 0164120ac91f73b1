"""The custom settings of the caller's session are found, and a session that is opened with them has
the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from custom_settings import (
    backend_settings,
    create_functions,
    reading_session,
    settings_as_sql_reads,
)
from psycopg2.extensions import make_dsn
from roles import another_role, refused, session_of
from workbench import Workbench

ROLE, MEMBER = "settings_role", "settings_member"
NAMES = ("app.a", "app.b", "app.c", "app.D", "app.tenant_id")
HARD = (
    "",
    " ",
    "a b  c ",
    'it\'s "quoted"',
    "back\\slash \\n \\",
    "two\nlines\r\n\ttab\v\f",
    "ünï ✓ 😀",
    "a=b=c",
    "-c x=y",
    "%s %d",
)


@pytest.fixture(scope="module")
def role(bench: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A session of a role with settings of its own, in this database and elsewhere."""
    create_functions(bench)
    with (
        another_role(bench, shared_superuser, ROLE) as session,
        another_role(bench, shared_superuser, MEMBER),
    ):
        shared_superuser.rows(f"GRANT {MEMBER} TO {ROLE}")
        yield session


@contextmanager
def session(role: Workbench, options: str | None = None) -> Iterator[Workbench]:
    """Open a session of the role that was not there before."""
    url = make_dsn(role.url, options=options) if options else role.url
    with closing(Workbench(url)) as opened:
        yield opened


@contextmanager
def default(superuser: Workbench, of: str, setting: str, value: str) -> Iterator[None]:
    """Give new sessions of a role or database a setting within the block."""
    superuser.rows(f"ALTER {of} SET {setting} = %s", value)
    try:
        yield
    finally:
        superuser.rows(f"ALTER {of} RESET {setting}")


def check(opened: Workbench, **expected: str) -> None:
    """Check that exactly these settings are found, with the values that SQL reads, and that a
    reader gets them.
    """
    found = backend_settings(opened)
    assert found == {name.replace("__", "."): value for name, value in expected.items()}
    assert settings_as_sql_reads(opened, found) == found
    with reading_session(opened) as reader:
        assert settings_as_sql_reads(reader, {*NAMES, *found}) == found


def test_without_any_there_are_none(role: Workbench) -> None:
    with session(role) as opened:
        check(opened)


def test_set_and_set_local(role: Workbench) -> None:
    with session(role) as opened:
        opened.rows("SET app.a = '1'")
        opened.rows("SELECT set_config('app.b', '2', false)")
        opened.rows("BEGIN")
        opened.rows("SET LOCAL app.c = '3'")
        opened.rows("SET LOCAL app.a = '4'")
        assert backend_settings(opened) == {"app.a": "4", "app.b": "2", "app.c": "3"}
        check(opened, app__a="4", app__b="2", app__c="3")
        opened.rows("COMMIT")
        check(opened, app__a="1", app__b="2")


def test_settings_of_the_role_and_the_database(
    role: Workbench, shared_superuser: Workbench
) -> None:
    name = shared_superuser.value("SELECT current_database()")
    with (
        default(shared_superuser, f"ROLE {ROLE}", "app.a", "of the role"),
        default(shared_superuser, f"DATABASE {name}", "app.b", "of the database"),
        default(shared_superuser, f"ROLE {ROLE} IN DATABASE {name}", "app.c", "of both"),
        default(shared_superuser, f"ROLE {ROLE}", "app.tenant_id", "2"),
        session(role) as opened,
    ):
        of_all = {"app__b": "of the database", "app__c": "of both"}
        check(opened, app__a="of the role", **of_all, app__tenant_id="2")
        opened.rows("SET app.tenant_id = '1'")
        check(opened, app__a="of the role", **of_all, app__tenant_id="1")
        opened.rows("RESET app.tenant_id")
        check(opened, app__a="of the role", **of_all, app__tenant_id="2")


def test_startup_options(role: Workbench) -> None:
    with session(role, "-c app.a=of\\ the\\ client -c app.b=") as opened:
        check(opened, app__a="of the client", app__b="")
        opened.rows("SET app.a = 'another'; RESET app.b")
        check(opened, app__a="another", app__b="")


def test_a_setting_that_only_new_sessions_have_is_empty(
    role: Workbench, shared_superuser: Workbench
) -> None:
    """The session that reads is a new one: it must not get what this one has not."""
    with session(role) as opened, default(shared_superuser, f"ROLE {ROLE}", "app.tenant_id", "2"):
        assert opened.value("SELECT current_setting('app.tenant_id', true)") is None
        assert backend_settings(opened) == {"app.tenant_id": ""}
        with reading_session(opened) as reader:
            assert reader.value("SHOW app.tenant_id") == ""


def test_set_role_brings_no_settings_of_that_role(
    bench: Workbench, role: Workbench, shared_superuser: Workbench
) -> None:
    with (
        default(shared_superuser, f"ROLE {MEMBER}", "app.tenant_id", "of the member"),
        session(role) as opened,
    ):
        opened.rows(f"SET app.a = '1'; SET ROLE {MEMBER}")
        check(opened, app__a="1")
        with closing(session_of(bench, MEMBER)) as member:
            check(member, app__tenant_id="of the member")


def test_a_superuser_in_a_role_gives_its_new_sessions_no_settings_of_that_role(
    bench: Workbench, role: Workbench, shared_superuser: Workbench
) -> None:
    """Worker sessions then log in as the role."""
    with (
        default(shared_superuser, f"ROLE {MEMBER}", "app.tenant_id", "of the member"),
        closing(shared_superuser.another()) as opened,
    ):
        opened.rows(f"SET ROLE {MEMBER}")
        assert backend_settings(opened) == {"app.tenant_id": ""}
        opened.rows("SET app.tenant_id = '7'")
        assert backend_settings(opened) == {"app.tenant_id": "7"}
        with reading_session(opened, session_of(bench, MEMBER).url) as reader:
            assert reader.row("SELECT session_user::text, current_setting('app.tenant_id')") == (
                MEMBER,
                "7",
            )


def test_the_clause_of_a_function(role: Workbench, shared_superuser: Workbench) -> None:
    shared_superuser.rows(
        "CREATE FUNCTION public.found_under_clause() RETURNS json LANGUAGE plpgsql SET app.a TO "
        "'of the clause' AS 'BEGIN RETURN public.custom_settings(NULL); END'"
    )
    with session(role) as opened:
        opened.rows("SET app.a = 'of the session'")
        assert opened.value("SELECT public.found_under_clause()") == {"app.a": "of the clause"}
        assert backend_settings(opened) == {"app.a": "of the session"}


@pytest.mark.parametrize("value", HARD)
def test_any_value_arrives_as_it_is(role: Workbench, value: str) -> None:
    with session(role) as opened:
        opened.rows(
            "SELECT set_config('app.a', %s, false), set_config('app.D', %s, false)",
            value,
            value * 2,
        )
        check(opened, app__a=value, app__D=value * 2)


def test_settings_of_extensions_that_a_user_may_set(
    role: Workbench, shared_superuser: Workbench
) -> None:
    """Settings that only a superuser may set are those of each session; our own are not read by a
    source.
    """
    with session(role) as opened:
        opened.rows("DO LANGUAGE plpgsql 'BEGIN END'")
        opened.rows("SET plpgsql.extra_warnings = 'strict_multi_assignment'")
        opened.rows("SET cerebro_db.look_at = 1")
        check(opened, plpgsql__extra_warnings="strict_multi_assignment")
    with (
        default(shared_superuser, f"ROLE {ROLE}", "plpgsql.variable_conflict", "use_column"),
        session(role) as opened,
    ):
        opened.rows("DO LANGUAGE plpgsql 'BEGIN END'")
        check(opened)


def test_a_name_in_a_policy_that_was_reset_is_empty(
    role: Workbench, shared_superuser: Workbench
) -> None:
    """A setting of a transaction that has ended is '', and is in no list of the server."""
    shared_superuser.rows(
        "CREATE TABLE public.open_tenants (tenant_id text); ALTER TABLE public.open_tenants "
        "ENABLE ROW LEVEL SECURITY;CREATE POLICY tenants ON public.open_tenants USING "
        "(current_setting('app.tenant_id', true) IS NULL OR tenant_id = "
        "current_setting('app.tenant_id'))"
    )
    with session(role) as opened:
        assert backend_settings(opened, "public.open_tenants") == {}
        opened.rows("BEGIN; SET LOCAL app.tenant_id = '1'; COMMIT")
        assert backend_settings(opened, "public.open_tenants") == {"app.tenant_id": ""}


def test_too_many_bytes_are_refused_without_a_value(role: Workbench) -> None:
    with session(role) as opened:
        opened.rows("SELECT set_config('app.a', repeat('marker', 1400), false)")
        error = refused(
            opened,
            "SELECT public.escape_startup_options()",
            code="54000",
            words="at most 8,000 can be passed",
        )
        assert "take 8,41" in str(error) and "marker" not in f"{error}{error.diag.context}"


@pytest.fixture(scope="module")
def schema(role: Workbench, shared_superuser: Workbench) -> str:
    """A view over a table with policies and functions, of which each reads a setting of its own."""
    shared_superuser.rows("""
        CREATE SCHEMA settings_shop;
        CREATE TABLE settings_shop.sales (id int, tenant_id text,
            part text) PARTITION BY LIST (part);
        CREATE TABLE settings_shop.sales_a PARTITION OF settings_shop.sales FOR VALUES IN ('a');
        CREATE TABLE settings_shop.members (tenant_id text);
        ALTER TABLE settings_shop.sales ENABLE ROW LEVEL SECURITY;
        ALTER TABLE settings_shop.members ENABLE ROW LEVEL SECURITY;
        CREATE FUNCTION settings_shop.region() RETURNS text LANGUAGE sql STABLE
            AS $$ SELECT current_setting('app.region'::text, true) $$;
        CREATE POLICY tenants ON settings_shop.sales
            USING (tenant_id IN (SELECT m.tenant_id FROM settings_shop.members m));
        CREATE POLICY members ON settings_shop.members
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), ''));
        CREATE VIEW settings_shop.here AS SELECT s.*, settings_shop.region() AS region
            FROM settings_shop.sales s
            WHERE current_setting('app.schön', true) IS NULL;
        CREATE VIEW settings_shop.outer_one AS
            SELECT id, current_setting('app.it''s', true) AS c FROM settings_shop.here;
        GRANT USAGE ON SCHEMA settings_shop TO PUBLIC; GRANT SELECT
            ON ALL TABLES IN SCHEMA settings_shop TO PUBLIC;
        """)
    return "settings_shop"


def test_without_a_list_names_are_those_of_definitions_that_apply(
    role: Workbench, schema: str
) -> None:
    names = ("app.tenant_id", "app.region", "app.schön", "app.elsewhere")
    with session(role) as opened:
        for name in names:
            opened.rows("SELECT set_config(%s, %s, false)", name, f"value of {name}")
        of_view = {name: f"value of {name}" for name in ("app.region", "app.schön")}
        assert backend_settings(opened, f"{schema}.sales", lists=False) == {
            "app.tenant_id": "value of app.tenant_id"
        }
        # The owner of the view reads the table past its policies.
        assert backend_settings(opened, f"{schema}.outer_one", lists=False) == of_view


def test_without_a_list_defaults_of_roles_are_found(
    role: Workbench, shared_superuser: Workbench
) -> None:
    with default(shared_superuser, f"ROLE {ROLE}", "app.a", "2"), session(role) as opened:
        opened.rows("SET app.a = '1'")
        assert backend_settings(opened, lists=False) == {"app.a": "1"}


def test_without_a_list_a_policy_that_computes_a_name_is_refused(
    role: Workbench, shared_superuser: Workbench, schema: str
) -> None:
    shared_superuser.rows(f"""
        CREATE TABLE {schema}.computed (tenant_id text); ALTER TABLE {schema}.computed ENABLE ROW
            LEVEL SECURITY;
        CREATE POLICY by_user ON {schema}.computed USING (tenant_id = current_setting('app.' ||
            current_user, true));
        GRANT SELECT ON {schema}.computed TO PUBLIC""")
    statement = "SELECT public.custom_settings(ARRAY[%s]::regclass[], false)"
    with session(role) as opened:
        refused(
            opened,
            statement,
            f"{schema}.computed",
            code="0A000",
            words="policy by_user of settings_shop.computed",
        )
        assert backend_settings(opened, f"{schema}.computed") == {}
    # The superuser reads it past the policy.
    assert backend_settings(shared_superuser, f"{schema}.computed", lists=False) == {}
