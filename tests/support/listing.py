"""What the extension consists of in a database, as lines that can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg2.extensions import connection as Connection

DISTRIBUTION = """
    SELECT format('%s %s', p.localoid::regclass, pg_get_table_distributedby(p.localoid))
    FROM gp_distribution_policy p JOIN pg_depend d ON d.classid = 'pg_class'::regclass
        AND d.objid = p.localoid
    JOIN pg_extension e ON e.oid = d.refobjid WHERE e.extname = 'cerebro_db' AND d.deptype = 'e'
"""
QUERY = Path(__file__).parents[1] / "upgrade" / "objects.sql"


def listing(connection: Connection) -> list[str]:
    """The lines of objects.sql, on Greenplum with what lies where; the functions' schema is called
    public.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'cerebro_db'"
        )
        (schema,) = cursor.fetchone() or pytest.fail("the extension is not there")
        cursor.execute("SET search_path = pg_catalog")
        cursor.execute(QUERY.read_text())
        lines = [str(line).replace(f"{schema}.", "public.") for (line,) in cursor.fetchall()]
        cursor.execute("SELECT to_regclass('pg_catalog.gp_distribution_policy') IS NOT NULL")
        if cursor.fetchone() == (True,):
            cursor.execute(DISTRIBUTION)
            lines += [line for (line,) in cursor.fetchall()]
        cursor.execute("RESET search_path")
    return sorted(lines)
