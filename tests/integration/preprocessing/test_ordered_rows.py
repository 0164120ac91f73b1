"""The rows that a network is given lie in an order of their own, so that their buffers have the
same rows each time.
"""

from __future__ import annotations

import pytest
from workbench import Workbench

from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.postgres.adapter import Postgres

ROWS = 3000
PARTS = {
    "columns": "t.n AS n, ARRAY[t.n::real] AS numbers",
    "side": "t.n % 7 > 0",
    "order": "pg_catalog.hashint8extended(t.n, 5)",
}


def places(bench: Workbench, source: str) -> dict[int, str]:
    """Where each row came to lie."""
    adapter = Greenplum() if bench.greenplum else Postgres()
    segment = "gp_segment_id" if bench.greenplum else "0"
    bench.rows("BEGIN")
    bench.rows(adapter.ordered_rows_sql("ordered", {**PARTS, "source": source}))
    found: dict[int, str] = dict(bench.rows(f"SELECT n, {segment} || ctid::text FROM ordered"))
    bench.rows("ROLLBACK")
    return found


@pytest.mark.parametrize("order", ["-n", "md5(n::text)"])
def test_it_does_not_matter_how_they_lay(bench: Workbench, order: str) -> None:
    elsewhere = " DISTRIBUTED RANDOMLY" if bench.greenplum else ""
    bench.rows(f"CREATE TABLE one AS SELECT n::bigint FROM generate_series(1, {ROWS}) n")
    bench.rows(f"CREATE TABLE other AS SELECT n FROM one ORDER BY {order}{elsewhere}")
    found = places(bench, "one")
    assert len(set(found.values())) == len(found) == ROWS - ROWS // 7
    assert found == places(bench, "other")
    bench.rows("DROP TABLE one, other")
