"""Tables that are poor, wide, or strange: a model comes of each, and predicts for every row."""

from __future__ import annotations

import psycopg2
import pytest
from workbench import Row, Workbench

QUICK = "configs => 1, epochs => 2, workers => 1, refit => 'none'"
COLUMNS = 850
"""With a number and whether it is missing for each, more than a statement may return."""
EACH = ", ".join(
    f"CASE WHEN n % {i % 7 + 2} > 0 THEN n * {i * 7 + 1} % 101 END AS c{i}"
    for i in range(1, COLUMNS + 1)
)
STRANGE = {
    "nothing": "NULL::integer",
    "seldom": "CASE WHEN n % 3 = 0 THEN n END",
    "no_text": "NULL::text",
    "few_texts": "CASE WHEN n % 9 = 0 THEN 'x' END",
    "constant": "7",
    "some_id": "n",
    "digest": "md5(n::text)",
    "few": "n % 5",
    "infinite": "CASE n % 5 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' WHEN 2 THEN 'nan' ELSE "
    "n::float8 END",
    "texts": "(ARRAY['', '😀', E'a\\nb', ' '])[n % 4 + 1]",
    "numbers": "to_jsonb(n % 9)",
    "values": """(ARRAY['"😀"', '1e999', NULL, '[{}]', 'null'])[n % 5 + 1]::json""",
    "mixed": """CASE WHEN n < 3 THEN '"x"' ELSE to_json(n) END""",
    "quoted": "to_jsonb(n::text)",
    "moments": "timestamptz '2020-01-01' + n * interval '7 h'",
    "clock": "time '00:00' + n * interval '1 min'",
    "spans": "n * interval '3 days'",
    "never": "'infinity'::date",
}
TABLES = {
    "five rows": "SELECT n AS x, (ARRAY['a', 'b'])[n % 2 + 1] AS y FROM generate_series(1, 5) n",
    "one column": "SELECT n AS x, n > 50 AS y FROM generate_series(1, 100) n",
    (
        "strange columns"
    ): f"""SELECT {", ".join(f"{text} AS {name}" for name, text in STRANGE.items())}, n % 9 > 3 AS y
                           FROM generate_series(1, 200) n""",
    "500 classes": "SELECT n % 500 + n % 7 / 10.0 AS x, 'c' || n % 500 AS y FROM "
    "generate_series(1, 5000) n",
    "1 in 1000": "SELECT n AS x, sin(n) AS z, n % 1000 = 0 AS y FROM generate_series(1, 5000) n",
    "huge numbers": """SELECT 1e300 * n AS x, 1e-300 * n AS z, 9e15::numeric * 1e40 + n AS w,
                              CASE WHEN n % 10 = 0 THEN 'infinity' ELSE n * 1e6::float8 END AS y
                       FROM generate_series(1, 200) n""",
    "many columns": f"SELECT {EACH}, n % 2 = 0 AS y FROM generate_series(1, 300) n",
}


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_a_model_comes_of_it(bench: Workbench, name: str) -> None:
    table = f'"{name}"'
    bench.rows(f"CREATE TABLE {table} AS {TABLES[name]}")
    template = "linear" if name == "many columns" else "realmlp"
    train = f"SELECT validation FROM cerebro.train(%s, 'y', %s, models => %s, {QUICK})"
    (validation,) = bench.row(train, table, name, [template])
    assert validation is not None and validation == validation
    query = "SELECT count(*), count(prediction) FROM cerebro.predict(%s, %s)"
    rows = bench.value(f"SELECT count(*) FROM {table}")
    assert bench.row(query, name, table) == (rows, rows)
    kinds = bench.rows("SELECT column_name, kind FROM cerebro.feature WHERE model = %s", name)
    if name == "many columns":  # a plan of them takes as long as all else
        assert len(kinds) == COLUMNS
    else:
        plan = (
            "SELECT name, data ->> 'kind' FROM cerebro.plan(%s, 'y', %s, configs => 1) WHERE "
            "section = 'column'"
        )
        assert sorted(bench.rows(plan, table, name)) == sorted(kinds)
    row = f"SELECT to_jsonb(t) FROM {table} t LIMIT 1"
    assert bench.value(f"SELECT cerebro.predict_row(%s, ({row})) -> 'prediction'", name)


def within_a_budget(bench: Workbench, options: str) -> list[Row]:
    """What a call leaves in as little time as this machine needs to train anything at all."""
    for seconds in (5, 15, 45, 120):
        try:
            return bench.rows(
                "SELECT run_id, mst_key, validation FROM cerebro.train('waves', 'y', models => "
                f"'{{realmlp}}', budget => '{seconds} seconds', {options})"
            )
        except psycopg2.Error as error:
            assert "the budget was over before any configuration was trained" in str(error)
    raise AssertionError("nothing was trained in two minutes")


@pytest.mark.long
def test_a_budget_that_is_over_leaves_the_best_so_far(bench: Workbench) -> None:
    waves = (
        "SELECT n AS x, sin(n) AS z, n % 7 AS k, cos(n / 9.0) AS y FROM generate_series(1, 2000) n"
    )
    bench.rows(f"CREATE TABLE waves AS {waves}")
    found = within_a_budget(bench, "configs => 6, epochs => 2000, ensemble => 1")
    run_id, _, validation = found[0]
    assert bench.row("SELECT status, error FROM cerebro.run WHERE run_id = %s", run_id) == (
        "completed",
        None,
    )
    trained = (
        "SELECT DISTINCT mst_key FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    )
    visited = bench.rows(trained, run_id)
    assert {(row[1],) for row in found} == set(visited) and len(visited) < 6
    reasons = bench.rows(
        "SELECT DISTINCT status, reason FROM cerebro.config WHERE run_id = %s", run_id
    )
    assert reasons == [("stopped", "the budget was over")]
    value = bench.value("SELECT value FROM cerebro.model_version WHERE run_id = %s", run_id)
    # Where little of the time was to be had nothing was evaluated in the run, and the version is,
    # when it is made.
    assert value == validation or validation is None


@pytest.mark.long
def test_what_keeps_a_version_from_being_made_is_no_end(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """Its run goes on, and makes it."""
    bench.rows("CREATE TABLE few AS SELECT n AS x, n % 2 = 0 AS y FROM generate_series(1, 60) n")
    shared_superuser.rows(
        "ALTER TABLE cerebro.version_log ADD CONSTRAINT none CHECK (version < 0) NOT VALID"
    )
    try:
        with pytest.raises(Exception, match="violates check constraint"):
            bench.rows(
                f"SELECT * FROM cerebro.train('few', 'y', 'few', models => '{{linear}}', {QUICK})"
            )
    finally:
        shared_superuser.rows("ALTER TABLE cerebro.version_log DROP CONSTRAINT none")
    run_id = bench.newest_run()
    status, reason = bench.row("SELECT status, error FROM cerebro.run WHERE run_id = %s", run_id)
    assert status == "failed" and "violates check constraint" in reason
    bench.rows("SELECT cerebro.resume(%s)", run_id)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run_id) == "completed"
    assert bench.row("SELECT version, run_id FROM cerebro.model_version WHERE model = 'few'") == (
        1,
        run_id,
    )
