"""A version knows what it needs: whatever becomes of the table that it was trained on, it predicts
the same bits.
"""

from __future__ import annotations

from typing import Any

import pytest
from roles import another_role
from workbench import Workbench

QUICK = "models => '{linear}', configs => 1, epochs => 3, ensemble => 1, seed => 1, refit => 'none'"
CLASSES = "changed classes"
NUMBERS = "changed numbers"
SOURCE = """
    CREATE DOMAIN postcode AS char(6);
    CREATE DOMAIN score AS integer;
    CREATE TYPE weather AS ENUM ('rain', 'sun');
    CREATE TABLE visits AS
    SELECT n AS id, (ARRAY['ab', 'c d', 'efg'])[n % 3 + 1]::postcode AS code,
           (ARRAY['rain', 'sun'])[n % 2 + 1]::weather AS sky, (n % 5 / 2.0)::numeric(4, 2) AS step,
           timestamptz '2020-01-01 00:00+00' + n % 3 * interval '1 hour' AS watch,
           (n * 1.10)::numeric AS cost, (n * 7919 % 97 / 7.0)::real AS small, n % 4 = 0 AS flag,
           n % 2 = 0 AS even, (n * 31 % 19)::score AS points
    FROM generate_series(1, 300) n;
    CREATE TABLE arrivals AS SELECT * FROM visits WHERE id <= 40;
    ALTER TABLE arrivals ADD PRIMARY KEY (id)"""
TYPES = '{"step": "category", "watch": "category"}'
CHANGES = {
    "renamed": "ALTER TABLE visits RENAME TO visits_of_2020",
    "another table in its place": "CREATE TABLE visits AS SELECT 1 AS id, 1 AS code, 1.5::float8"
    " AS sky, 'x'::text AS step, 7 AS watch, true AS cost, 'y'::text AS small, 8 AS flag, 9 AS"
    " even, 'z'::text AS points",
    "dropped": "DROP TABLE visits",
    "of other types": "ALTER TABLE visits_of_2020 RENAME TO visits; ALTER TABLE visits ALTER code"
    " TYPE text, ALTER step TYPE float8, ALTER watch TYPE text, ALTER points TYPE text, ALTER"
    " cost TYPE text",
    "without a column": "ALTER TABLE visits DROP COLUMN sky, DROP COLUMN points",
    "without its schema's types": "DROP TABLE visits; ALTER DOMAIN score RENAME TO rating",
}
"""Statements, one after another."""


@pytest.fixture(scope="module")
def versions(bench: Workbench) -> str:
    """Two models over a table; the name of another table with such rows."""
    bench.rows(SOURCE)
    for model, target, other in ((CLASSES, "even", "points"), (NUMBERS, "points", "even")):
        columns = f"* except id, {other}"
        bench.rows(
            f"SELECT FROM cerebro.train('visits', %s, %s, columns => %s, types => %s, {QUICK})",
            target,
            model,
            columns,
            TYPES,
        )
    return "arrivals"


def answers(session: Workbench, model: str, rows: str) -> dict[str, Any]:
    """Return what every call returns about the rows of a table."""
    calls = {
        "predict": "SELECT p::text FROM cerebro.predict(%s, %s) p ORDER BY p.id::integer",
        "evaluate": "SELECT e::text FROM cerebro.evaluate(%s, %s) e",
        "importance": "SELECT i::text FROM cerebro.importance(%s, %s) i",
        "drift": "SELECT d::text FROM cerebro.drift(%s, %s) d",
        "attribution": "SELECT a::text FROM cerebro.attribution(%s, %s) a ORDER BY a::text",
    }
    results = {name: session.rows(call, model, rows) for name, call in calls.items()}
    results["predict_row"] = session.rows(
        f"SELECT cerebro.predict_row(%s, to_jsonb(t))::text FROM {rows} t ORDER BY t.id", model
    )
    for view in ("model_version", "feature"):
        results[view] = session.rows(
            f"SELECT v::text FROM cerebro.{view} v WHERE v.model = %s", model
        )
    return results


def test_predictions_do_not_depend_on_the_source(
    bench: Workbench, shared_superuser: Workbench, versions: str
) -> None:
    """A session that has not used the models before answers the same after each change."""
    before = {model: answers(bench, model, versions) for model in (CLASSES, NUMBERS)}
    assert len({text for (text,) in before[NUMBERS]["predict_row"]}) > 5
    with another_role(bench, shared_superuser, "clerk_of_changes") as clerk:
        for model in before:
            bench.rows("SELECT cerebro.grant_predict(%s, 'clerk_of_changes')", model)
        bench.rows("GRANT SELECT ON arrivals TO clerk_of_changes")
        granted = granted_answers(bench, clerk, versions)
        for name, statement in CHANGES.items():
            bench.rows(statement)
            session = bench.another()
            try:
                for model, expected in before.items():
                    assert answers(session, model, versions) == expected, name
                assert granted_answers(session, clerk, versions) == granted, name
            finally:
                session.close()


def granted_answers(owner: Workbench, clerk: Workbench, rows: str) -> list[object]:
    """Return what a role to which the models were granted gets, after they are published again."""
    schema = owner.value("SELECT current_schema()")
    results: list[object] = []
    for model in (CLASSES, NUMBERS):
        owner.rows("UPDATE cerebro.model_log SET deployed = NULL WHERE model = %s", model)
        owner.rows("SELECT cerebro.deploy(%s, 'newest')", model)
        results += clerk.rows(
            "SELECT cerebro.predict_row(%s, to_jsonb(t), owner => %s)::text"
            f" FROM {schema}.{rows} t ORDER BY t.id",
            model,
            owner.value("SELECT current_user"),
        )
    return results
