"""What the extension consists of in a database, as lines that can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg2.extensions import connection as Connection

QUERY = Path(__file__).parents[1] / "upgrade" / "objects.sql"


def listing(connection: Connection) -> list[str]:
    """The lines of objects.sql, with the functions' schema called public wherever it is."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'cerebro_db'")
        (schema,) = cursor.fetchone() or pytest.fail("the extension is not there")
        cursor.execute("SET search_path = pg_catalog")
        cursor.execute(QUERY.read_text())
        lines = [str(line).replace(f"{schema}.", "public.") for (line,) in cursor.fetchall()]
        cursor.execute("RESET search_path")
    return sorted(lines)
