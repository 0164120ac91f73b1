"""What an installation consists of, and that every way to it leads to the same.

What an update of a released version leads to is in test_release.py. The file objects.txt is the
list of objects that users can see, so that a change of the interface shows in review, and
objects-greenplum.txt says what is otherwise on Greenplum; `make objects` writes both, the second
where a Greenplum is given.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import psycopg2
import pytest
from listing import listing
from psycopg2.extensions import connection as Connection
from sources import read_reference
from workbench import Workbench

from cerebro_db.server import deployment

HERE = Path(__file__).parent
IN_OLD_DUMPS = {"sealed_begin", "sealed_add"}
"""Internal functions that functions of grants call by this name, in dumps of all versions."""
FORMS = ("CREATE EXTENSION cerebro_db CASCADE", "CREATE EXTENSION cerebro_db SCHEMA madlib CASCADE")


@pytest.fixture
def connection(shared_superuser: Workbench) -> Connection:
    """The superuser's session, in which every statement commits."""
    return shared_superuser.connection


def execute(connection: Connection, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def made_anew(connection: Connection, form: str) -> list[str]:
    execute(connection, "DROP EXTENSION cerebro_db CASCADE")
    execute(connection, "SET search_path = public")
    execute(connection, form)
    return listing(connection)


def test_both_forms_make_the_listed_objects_again_and_again(
    connection: Connection, platform: str, request: pytest.FixtureRequest
) -> None:
    lines, again, in_madlib = (made_anew(connection, form) for form in (FORMS[0], *FORMS))
    assert [*difflib.unified_diff(lines, in_madlib, lineterm="", n=0)] == []
    assert again == lines
    found = [line for line in lines if not line.startswith("digest of ")]
    recorded = HERE / "objects.txt"
    if platform == "greenplum":
        found = changes(recorded.read_text().splitlines(), found)
        recorded = HERE / "objects-greenplum.txt"
    if request.config.getoption("--write-objects"):
        recorded.write_text("\n".join(found) + "\n")
    difference = difflib.unified_diff(
        recorded.read_text().splitlines(), found, recorded.name, "database", lineterm=""
    )
    assert [*difference] == [], "where this is meant, `make objects` writes the list anew"


def changes(before: list[str], after: list[str]) -> list[str]:
    """Lines that only one of two lists has, with a sign that says which."""
    return [line for line in difflib.ndiff(before, after) if line[0] in "-+"]


def test_every_object_has_a_comment(connection: Connection) -> None:
    """Sequences belong to their columns, types to their tables; the rest says what it is for."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT pg_describe_object(d.classid, d.objid, 0)
            FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
            WHERE e.extname = 'cerebro_db' AND d.refclassid = 'pg_extension'::regclass
                AND d.deptype = 'e'
              AND obj_description(d.objid, (SELECT relname FROM pg_class
                  WHERE oid = d.classid)) IS NULL
              AND NOT (d.classid = 'pg_class'::regclass
                       AND (SELECT relkind FROM pg_class WHERE oid = d.objid) IN ('S', 'i', 'c'))
              AND NOT (d.classid = 'pg_type'::regclass
                       AND (SELECT typrelid <> 0 OR typelem <> 0 FROM pg_type WHERE oid = d.objid))
            """
        )
        assert cursor.fetchall() == []


def test_nothing_is_public(connection: Connection) -> None:
    """A role that was granted nothing can execute none of the functions."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE stranger")
        try:
            cursor.execute(
                """
                SELECT p.oid::regprocedure::text
                FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
                JOIN pg_proc p ON p.oid = d.objid AND d.classid = 'pg_proc'::regclass
                WHERE e.extname = 'cerebro_db' AND d.refclassid = 'pg_extension'::regclass
                    AND d.deptype = 'e'
                  AND has_function_privilege('stranger', p.oid, 'execute')
                """
            )
            assert cursor.fetchall() == []
        finally:
            cursor.execute("DROP ROLE stranger")


def test_schema_cerebro_has_the_functions_that_the_reference_documents(
    connection: Connection,
) -> None:
    """As `\\df cerebro.*` lists them, and no other one."""
    headings = re.findall(r"^### (cerebro\.[a-z_0-9., ]+)$", read_reference(), re.MULTILINE)
    documented = {name.partition(".")[2] for line in headings for name in line.split(", ")}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT proname::text FROM pg_proc "
            "WHERE pronamespace = 'cerebro'::regnamespace"
        )
        functions = {name for (name,) in cursor.fetchall()}
    assert functions - IN_OLD_DUMPS == documented
    assert functions > IN_OLD_DUMPS


def test_the_script_refuses_to_be_run_by_hand(connection: Connection) -> None:
    """psql stops at the first line; anything else stumbles over it."""
    script = next(deployment.EXTENSION.glob("cerebro_db--*.sql"))
    with connection.cursor() as cursor, pytest.raises(psycopg2.errors.SyntaxError):
        cursor.execute(script.read_text())
