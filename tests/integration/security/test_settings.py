"""Settings of an administrator: `cerebro.set`, and the trigger that checks every row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from followed_hints import read_statements
from hint_texts import list_changes_of_settings
from hypothesis import given
from hypothesis import strategies as st
from roles import refused
from workbench import Workbench

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import fields
from cerebro_plpy.trainer_client import settings

NAMES = tuple(field.name for field in fields(settings.Settings))
TEXTS = tuple(name for name in NAMES if name in ("trainer_python", "worker_conninfo"))
ROW = "SELECT value FROM cerebro.setting WHERE name = %s"
WRONG = {
    "no path": ("trainer_python", "python3", "expected the absolute path of an interpreter"),
    "no connection string": ("worker_conninfo", "localhost", "expected a connection string"),
    "an open quote": ("worker_conninfo", "host='localhost", "expected a connection string"),
    "no number": ("cache_mb", "much", "setting cache_mb is 'much'; expected a whole number from 0"),
    "negative": ("trainer_idle_seconds", "-1", "expected a whole number from 0 to 2147483647"),
    "one worker": ("max_workers_total", "1", "expected a whole number from 2 to 262143"),
    "too little": ("trainer_memory_mb", "1", "expected a whole number from 64 to 2147483647"),
    "too much": ("spare_cores", "2147483648", "expected a whole number from 0 to 2147483647"),
    "odd digits": ("cache_mb", "²", "setting cache_mb is '²'"),
    "a device twice": ("gpus", "0, 00", "expected different numbers of devices"),
    "too many devices": ("gpus", "1025", "expected different numbers of devices"),
    "a relative path": ("compilation_cache", ".", "expected the absolute path of a folder"),
    "no array": ("tenant_roles", "web", "expected an array of roles, such as '{web,app}'"),
    "a comma": ("price_per_core_hour", "0,05", "expected a number, such as '0.05'"),
    "a sign": ("watts_per_gpu", "-1", "expected a number, such as '300'"),
}


@pytest.fixture
def administrator(shared_superuser: Workbench) -> Iterator[Workbench]:
    """A superuser in a transaction, of which nothing stays."""
    shared_superuser.rows("BEGIN")
    yield shared_superuser
    shared_superuser.rows("ROLLBACK")


def test_a_setting_is_stored_and_reset(administrator: Workbench) -> None:
    for value in (7, "8", 9):
        administrator.rows("SELECT cerebro.set('cache_mb', %s)", value)
    assert administrator.rows(ROW, "cache_mb") == [("9",)]
    administrator.rows("SELECT cerebro.set('price_per_core_hour', 0.040)")
    assert administrator.rows(ROW, "price_per_core_hour") == [("0.040",)]
    for _ in range(2):
        administrator.rows("SELECT cerebro.set('cache_mb', NULL)")
        assert administrator.rows(ROW, "cache_mb") == []


@pytest.mark.parametrize(("name", "value", "words"), WRONG.values(), ids=WRONG)
def test_no_statement_stores_a_wrong_value(
    shared_superuser: Workbench, name: str, value: str, words: str
) -> None:
    """The hint returns to the default."""
    before = shared_superuser.rows("SELECT * FROM cerebro.setting ORDER BY 1")
    error = refused(shared_superuser, "SELECT cerebro.set(%s, %s)", name, value, code="22023")
    assert words in str(error.diag.message_primary)
    assert error.diag.message_hint == f"SELECT cerebro.set('{name}', NULL); returns to the default."
    refused(
        shared_superuser,
        "INSERT INTO cerebro.setting VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = "
        "excluded.value",
        name,
        value,
        code="22023",
    )
    assert shared_superuser.rows("SELECT * FROM cerebro.setting ORDER BY 1") == before


def test_an_unknown_name_is_an_error_of_a_call_and_left_out_of_rows(
    administrator: Workbench,
) -> None:
    administrator.rows("INSERT INTO cerebro.setting VALUES ('trainer', 'x')")
    warning = administrator.connection.notices[-1]
    assert "WARNING:  cerebro_db has no setting 'trainer'; its row was left out" in warning
    assert ", ".join(NAMES[:2]) in warning
    assert administrator.rows(ROW, "trainer") == []
    administrator.rows("SAVEPOINT before")
    error = refused(administrator, "SELECT cerebro.set('trainer', 'x')", code="22023")
    administrator.rows("ROLLBACK TO before")
    assert set(str(error.diag.message_hint)[len("The settings are ") : -1].split(", ")) == {*NAMES}


def test_a_row_of_a_gone_setting_can_be_removed(administrator: Workbench) -> None:
    """A row that a trigger has not seen."""
    administrator.rows("ALTER TABLE cerebro.setting DISABLE TRIGGER check_setting")
    administrator.rows("INSERT INTO cerebro.setting VALUES ('function_path', '/nowhere')")
    administrator.rows("ALTER TABLE cerebro.setting ENABLE TRIGGER check_setting")
    administrator.rows("SAVEPOINT before")
    call = "SELECT cerebro.trainer_report()"
    error = refused(administrator, call, code="22023")
    template = "As an administrator: SELECT cerebro.set({}, NULL);"
    (statement,) = read_statements(error, template)
    assert statement == "SELECT cerebro.set('function_path', NULL);"
    administrator.rows("ROLLBACK TO before")
    administrator.rows(statement)
    assert administrator.rows(ROW, "function_path") == []


def test_a_quota_that_limits_nobody_is_stored_with_a_warning(administrator: Workbench) -> None:
    """Of a name with a mistake, and of a group; the hint about a mistake can be typed."""
    administrator.rows("CREATE ROLE quota_group")
    insert = "INSERT INTO cerebro.quota (role, trainers) VALUES (%s, 1)"
    administrator.rows(insert, "quota_group")
    group = administrator.connection.notices[-1]
    assert "role 'quota_group' cannot log in: its quota does not limit the runs of its" in group
    administrator.rows(insert, "nobody's")
    unknown = administrator.connection.notices[-1]
    assert "there is no role 'nobody''s': its quota limits no run" in unknown
    _, _, statement = unknown.strip().partition("If the name has a mistake: ")
    administrator.rows(statement)
    count = len(administrator.connection.notices)
    administrator.rows(insert, None)
    administrator.rows(insert, "cerebro")
    assert len(administrator.connection.notices) == count
    stored = administrator.rows("SELECT role::text FROM cerebro.quota ORDER BY 1")
    assert stored == [("cerebro",), ("quota_group",), (None,)]


def test_hints_about_settings_can_be_typed(administrator: Workbench) -> None:
    statements = list_changes_of_settings()
    assert len(statements) > 4, "this test finds nothing any more"
    for statement in statements:
        administrator.rows(statement)


numbers = st.integers(-2, 1 << 33).map(str)
digits = st.text("0123456789 .,", max_size=12)
roles = st.lists(st.text('ab "{}\\,', max_size=4)).map(lambda parts: "{" + ",".join(parts) + "}")
words = st.text("=' \\host5/", max_size=12)
texts = st.one_of(
    st.text(max_size=8).filter(lambda text: "\0" not in text), numbers, digits, roles, words
)


@given(name=st.sampled_from(NAMES), value=texts)
def test_what_is_stored_can_be_read(shared_superuser: Workbench, name: str, value: str) -> None:
    """The trigger and the backend accept the same values; the trigger also knows what else is no
    path and no connection string.
    """
    is_stored = True
    shared_superuser.rows("BEGIN")
    try:
        shared_superuser.rows("SELECT cerebro.set(%s, %s)", name, value)
        if name == "tenant_roles":
            shared_superuser.rows("SELECT value::text[] FROM cerebro.setting WHERE name = %s", name)
    except Exception as error:
        assert getattr(error, "pgcode", None) == "22023"
        is_stored = False
    finally:
        shared_superuser.rows("ROLLBACK")
    if name in (*TEXTS, "compilation_cache", "tenant_roles"):
        return
    try:
        settings._parse(name, value)
    except InvalidParameter:
        assert not is_stored
    else:
        assert is_stored
