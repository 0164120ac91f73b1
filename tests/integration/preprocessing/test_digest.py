"""A fingerprint is that of rows, whatever order they lie in; and of all that a network sees of
them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.platform.greenplum.adapter import Greenplum
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.preprocessing.learning.raw_table import RawTable, read_table
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.rows.fingerprint import compute_digest, fingerprint
from cerebro_plpy.preprocessing.rows.opened_source import TableOptions
from cerebro_plpy.preprocessing.rows.row_subset import raw_rows_statement

SHIPS = """
    CREATE TABLE {} AS
    SELECT n AS id, n * 7919 % 101 AS tons, nullif(sin(n), sin(7)) AS speed,
           (ARRAY['cargo', 'tanker', NULL])[1 + n % 3] AS kind,
               timestamp '2020-01-01' + n * interval '1 hour' AS seen,
           n % 5 + 1 AS weight, {} AS lost
    FROM generate_series(1, 300) AS n ORDER BY hashint4({} * n);
    ALTER TABLE {} ADD PRIMARY KEY (id)"""
TARGETS = {"class": "n % 2 = 0", "number": "sqrt(n)"}


@pytest.fixture(scope="module", params=TARGETS)
def ships(bench: Workbench, request: pytest.FixtureRequest) -> Iterator[str]:
    """One of two tables that have the same rows in another order; the other one has an a more in
    its name.
    """
    for name, order in (("ships", 1), ("shipsa", 99991)):
        bench.rows(SHIPS.format(name, TARGETS[request.param], order, name))
    yield "ships"
    bench.rows("DROP TABLE ships, shipsa")


def seen(
    bench: Workbench, name: str, change: str = "", before: RawTable | None = None
) -> tuple[str, RawTable]:
    """The fingerprint of a table after a change, encoded as before, and how it was encoded."""
    session, adapter = Session(bench), Greenplum() if bench.greenplum else Postgres()
    oid = bench.value(f"SELECT '{name}'::regclass::oid::bigint")
    relation = Relation(name, "public", name, oid, f"public.{name}")
    bench.rows("BEGIN")
    try:
        wishes = TableOptions("lost", None, None, {}, "random 0.2", "weight", 1, False)
        rows = SourceRows(session, session.run)
        table = before or read_table(rows, "train", relation, wishes)
        if change:
            bench.rows(f"UPDATE {name} SET {change}")
        digests = []
        for part in table.parts:
            output = rows.name_table("rows")
            session.run(*raw_rows_statement(adapter, part, output))
            digests.append(
                compute_digest(session, part, output, table.target.task == CLASSIFICATION)
            )
        assert digests[0].rows == table.rows and digests[1].rows == table.validation_rows
        return fingerprint(*(each.hashes for each in digests)), table
    finally:
        bench.rows("ROLLBACK")


def test_the_order_of_rows_does_not_matter(bench: Workbench, ships: str) -> None:
    assert bench.rows("SELECT id FROM ships") != bench.rows("SELECT id FROM shipsa")
    assert seen(bench, ships)[0] == seen(bench, "shipsa")[0]


def test_any_cell_changes_it(bench: Workbench, ships: str) -> None:
    """One of either side; values change places in a row, and between two of them."""
    before, table = seen(bench, ships)
    assert seen(bench, ships, before=table)[0] == before
    lost = "NOT lost" if table.target.task == CLASSIFICATION else "lost + 1"
    side = table.parts[1].side
    held = Session(bench).run(f"SELECT min(t.id) FROM {ships} t WHERE {side.text}", side.values)[0][
        0
    ]
    other = "kind = CASE kind WHEN 'cargo' THEN 'tanker' ELSE 'cargo' END"
    changes = [
        f"{each} WHERE id = {row}"
        for row in (held, 1 if held > 1 else 2)
        for each in (
            "tons = tons + 1",
            "speed = NULL",
            other,
            "seen = seen + interval '1 day'",
            f"lost = {lost}",
        )
    ]
    trained = 1 if held > 1 else 2
    changes += [f"weight = 9 WHERE id = {trained}", "tons = 101 - tons WHERE id IN (3, 5)"]
    found = [seen(bench, ships, change, table)[0] for change in changes]
    assert before not in found and len(set(found)) == len(changes)
