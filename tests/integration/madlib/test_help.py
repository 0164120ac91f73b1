"""f() and f('usage'), as MADlib's users ask, for every function of the schema; a comment on each
for \\df+.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg2
import pytest
from followed_hints import Call, error_of, read_statements
from servers import Database
from workbench import Workbench

# Every function of the extension in the schema of users, and how few arguments it takes.
FUNCTIONS = """
SELECT p.proname::text, min(p.pronargs - p.pronargdefaults)
FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
    AND d.deptype = 'e'
WHERE p.pronamespace = 'madlib'::regnamespace AND p.proargnames IS DISTINCT FROM '{message}'
    AND p.pronargs > 0
GROUP BY 1
"""
EVERYTHING = """
SELECT p.oid::regprocedure::text, obj_description(p.oid, 'pg_proc'), n.nspname FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname IN ('madlib', 'cerebro', 'cerebro_internal')
"""


@pytest.fixture(scope="module")
def session(shared_database: Database) -> Iterator[Workbench]:
    made = Workbench(shared_database.url)
    yield made
    made.close()


@pytest.fixture(scope="module")
def explained(session: Workbench) -> list[str]:
    """Functions that no single text can be meant for."""
    return [name for name, needed in session.rows(FUNCTIONS) if needed > 1]


@pytest.mark.checklist(45)
def test_every_function_explains_itself(session: Workbench, explained: list[str]) -> None:
    assert {"load_keras_model", "madlib_predict", "madlib_keras_predict"} <= set(explained)
    for name in explained:
        short = session.value(f"SELECT {name}()")
        assert f"    {name}(" in short
        assert short.endswith(f"SELECT {name}('usage');")
        (whole,) = {
            session.value(f"SELECT {name}('{message}')")
            for message in ("usage", "help", "?", "Usage")
        }
        assert name in whole.split("\n")[0]
        assert "\nExample:\n" in whole
        assert session.value(f"SELECT {name}(NULL)") == short


def test_anything_else_is_an_error(session: Workbench, explained: list[str]) -> None:
    for name in explained:
        with pytest.raises(psycopg2.errors.InvalidParameterValue) as error:
            session.rows(f"SELECT {name}('iris')")
        assert f"{name}: message is 'iris'; expected one of usage, help, ?." in str(
            error.value.diag.message_primary
        )
        assert f"SELECT {name}('usage');" in str(error.value.diag.message_hint)


def test_functions_of_one_argument_explain_themselves_without_it(session: Workbench) -> None:
    for name, needed in session.rows(FUNCTIONS):
        if needed == 1:
            assert "\nExample:\n" in session.value(f"SELECT {name}()")


def test_arguments_that_are_missing_are_explained(session: Workbench) -> None:
    call = Call("cerebro.submit", {"call": "'madlib_fit'", "arguments": "'{}'"})
    template = "SELECT cerebro.help({}, 'usage');"
    (statement,) = read_statements(error_of(session, call), template)
    assert "Example:" in session.value(statement)


def test_functions_of_the_other_schema(session: Workbench) -> None:
    assert "cerebro.submit(" in session.value("SELECT cerebro.help('cerebro.submit')")
    assert "Example:" in session.value("SELECT cerebro.help('cerebro.submit', 'usage')")
    assert "madlib_predict, madlib_keras_predict" in session.value("SELECT cerebro.help()")
    assert session.value("SELECT cerebro.help('submit')") == session.value(
        "SELECT cerebro.help('cerebro.submit')"
    )
    with pytest.raises(
        psycopg2.errors.UndefinedObject, match="there is no help for a function 'submt'"
    ):
        session.rows("SELECT cerebro.help('submt')")


def test_help_does_not_hide_the_functions(session: Workbench, explained: list[str]) -> None:
    """Named arguments, too few and too many of them are still told apart."""
    for name in explained:
        with pytest.raises(psycopg2.errors.UndefinedFunction, match="does not exist"):
            session.rows(f"SELECT {name}(nonsense => 1)")


def test_which_version_it_is(session: Workbench) -> None:
    """The first statement of MADlib's notebooks; drivers read the number after its first words."""
    told = re.fullmatch(
        r"MADlib version: (\d+\.\d+\.\d+), .*cerebro_db (\S+) .*",
        session.value("SELECT madlib.version()"),
    )
    assert told is not None and told[1].startswith("2.1")
    assert told[2] == session.value(
        "SELECT extversion FROM pg_extension WHERE extname = 'cerebro_db'"
    )
    assert "PostgreSQL" in session.value("SELECT version()"), "the server's own is not hidden"


def test_a_terminal_of_another_encoding(session: Workbench, explained: list[str]) -> None:
    session.rows("SET client_encoding = 'SQL_ASCII'")
    try:
        for name in explained:
            session.value(f"SELECT {name}('usage')").encode("ascii")
    finally:
        session.rows("RESET client_encoding")


def test_every_function_has_a_comment(session: Workbench) -> None:
    found = session.rows(EVERYTHING)
    assert len(found) > 50
    assert [name for name, comment, _ in found if not comment] == []
    assert [
        name
        for name, comment, schema in found
        if schema == "madlib" and comment.startswith("Internal")
    ] == []
