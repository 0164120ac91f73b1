"""Roles of a test's own: sessions of other users in the same database, and their end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from workbench import Workbench


def session_of(bench: Workbench, role: str) -> Workbench:
    """A session of that role in the same database."""
    return Workbench(bench.url.replace("//cerebro@", f"//{role}@", 1))


def refused(
    session: Workbench, statement: str, *values: object, code: str | None = "42501", words: str = ""
) -> psycopg2.Error:
    """The error of a statement that is refused, with that SQLSTATE (None: any) and those words; the
    session goes on.
    """
    with pytest.raises(psycopg2.Error) as error:
        session.rows(statement, *values)
    assert code in (None, error.value.pgcode) and words in str(error.value), str(error.value)
    assert not session.connection.closed
    return error.value


@contextmanager
def another_role(
    bench: Workbench,
    superuser: Workbench,
    name: str,
    *,
    granted: bool = True,
    options: str = "LOGIN",
) -> Iterator[Workbench]:
    """A new role, by a name of its own file's, and a session of it, or of the superuser's where it
    cannot log in.
    """
    with _removed(superuser, name):
        superuser.rows(f'CREATE ROLE "{name}" {options}')
        superuser.rows(f'GRANT USAGE ON SCHEMA madlib TO "{name}"')
        if granted:
            superuser.rows("SELECT cerebro.grant_usage(%s::regrole)", f'"{name}"')
        session = session_of(bench, name if "NOLOGIN" not in options else "postgres")
        try:
            yield session
        finally:
            session.close()


def own_schema(superuser: Workbench, role: str) -> None:
    """A schema that is named like the role and given to it: Greenplum makes none for who may create
    none.
    """
    superuser.rows(f'CREATE SCHEMA "{role}"; ALTER SCHEMA "{role}" OWNER TO "{role}"')


@contextmanager
def _removed(superuser: Workbench, name: str) -> Iterator[None]:
    """Remove the role afterwards, and before where a test run that was ended left it."""
    _remove(superuser, name)
    try:
        yield
    finally:
        _remove(superuser, name)


def _remove(superuser: Workbench, name: str) -> None:
    if superuser.rows("SELECT FROM pg_roles WHERE rolname = %s", name):
        superuser.rows(f'DROP OWNED BY "{name}" CASCADE')
        superuser.rows(f'DROP ROLE "{name}"')
