"""Databases of an encoding in which PL/Python breaks are refused; sessions do not depend on that of
the role.
"""

from __future__ import annotations

import psycopg2
import pytest
from psycopg2.extensions import connection as Connection
from servers import Database
from workbench import Workbench, several

SQL_ASCII = pytest.param(
    "SQL_ASCII", marks=pytest.mark.postgresql("Greenplum makes no database of this encoding")
)


@pytest.mark.parametrize("encoding", ["LATIN1", SQL_ASCII])
def test_a_database_of_another_encoding_is_refused(
    database: Database, superuser: Connection, encoding: str
) -> None:
    name = f"{database.name}_{encoding.lower()}"
    with superuser.cursor() as cursor:
        cursor.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE "
            "template0"
        )
    other = Workbench(database.superuser_url.replace(database.name, name))
    try:
        other.rows("CREATE EXTENSION cerebro_db CASCADE")
        with pytest.raises(psycopg2.errors.FeatureNotSupported, match=encoding):
            other.rows("SELECT load_keras_model('models', '{}')")
    finally:
        other.close()
        with superuser.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.long
def test_names_that_the_roles_own_client_encoding_lacks(bench: Workbench) -> None:
    bench.rows("ALTER ROLE CURRENT_USER SET client_encoding = 'LATIN1'")
    try:
        bench.pack('"packed 名"', 2)
        bench.configure("one", several(1))
        bench.rows(
            """SELECT madlib_fit_multiple_model('"packed 名"', '"model 名"', 'one', 1, seed => 1)"""
        )
    finally:
        bench.rows("ALTER ROLE CURRENT_USER RESET client_encoding")
    assert bench.value('SELECT count(*) FROM "model 名"') == 1
