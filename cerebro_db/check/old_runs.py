"""Check of the disk that runs keep which ended long ago."""

from __future__ import annotations

import sqlalchemy as sa

from cerebro_db.check.finding import Finding

AGE = "30 days"
# Tables that cerebro.vacuum_runs drops: states, frozen weights, packed rows.
SIZES = """
SELECT r.owner::text, pg_catalog.count(DISTINCT r.run_id),
       pg_catalog.pg_size_pretty(pg_catalog.sum(pg_catalog.pg_total_relation_size(c.oid)))
FROM cerebro.run r
JOIN pg_catalog.pg_class c
  ON pg_catalog.substring(c.relname::text, '^r([0-9]+)_(?:c|z_|training|validation|compared)')
     = r.run_id::text
WHERE c.relnamespace = 'cerebro_state'::pg_catalog.regnamespace AND c.relkind = 'r'
  AND r.ended_at < pg_catalog.now() - %s::pg_catalog.interval
GROUP BY r.owner ORDER BY pg_catalog.sum(pg_catalog.pg_total_relation_size(c.oid)) DESC
"""


def check_old_runs(connection: sa.Connection) -> Finding | None:
    """Check that no run that ended long ago keeps its states, of the runs that the caller sees."""
    rows = connection.exec_driver_sql(SIZES, (AGE,)).all()
    if not rows:
        return None
    parts = [f"{owner}: {count} with {size}" for owner, count, size in rows]
    return Finding(
        state="WARN",
        summary=f"runs that ended {AGE} ago or earlier keep their states ({'; '.join(parts)})",
        remedy=f"As each owner: SELECT cerebro.vacuum_runs('{AGE}'); models stay.",
    )
