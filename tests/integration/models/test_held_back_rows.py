"""What a run computes of the rows that it holds back, as it has packed them, is what calls over the
raw rows give.
"""

from __future__ import annotations

import json

import pytest
from workbench import Workbench

from cerebro_plpy.preprocessing.scoring.error_quantiles import USUAL_LEVEL, ErrorQuantiles

pytestmark = pytest.mark.postgresql("on Greenplum group_by is refused")

ITEMS = """
    CREATE FUNCTION items_of(first integer, last integer) RETURNS TABLE (
        id integer, price float8, shop text, sold timestamptz, note text, sizes real[], grid real[],
            amount numeric,
        much boolean)
    LANGUAGE sql AS $$
    SELECT n, nullif(n * 7919 % 101 / 10.0, 3), (ARRAY['a', 'b', NULL])[n % 3 + 1],
           timestamptz '2020-02-28 22:00:00+03' + n * interval '7 hours',
           (SELECT string_agg('word' || (n * w) % 17, ' ') FROM generate_series(1, 9) w),
           ARRAY[n % 5, nullif(n % 7, 0), 1],
           ARRAY(SELECT ARRAY[n * y % 7, y, n % 5] FROM generate_series(1, 4) y),
           (n * 7919 % 101 * (n % 2 + 0.5) + n % 3)::numeric, n * 7919 % 101 > 50
    FROM generate_series(first, last) n $$;
    CREATE TABLE items AS SELECT * FROM items_of(1, 400);
    CREATE TABLE later AS SELECT * FROM items_of(401, 600)"""
TYPES = json.dumps({"note": "text", "sizes": "vector", "grid": "image"})
OPTIONS = (
    f"models => '{{linear}}', epochs => 3, seed => 1, workers => 1, split => 'table later', types "
    f"=> '{TYPES}'"
)
NUMBERS = (
    "columns => '* except much', configs => 1, ensemble => 1, group_by => 'shop', min_group_rows "
    "=> 100"
)
CLASSES = (
    "columns => '* except amount', configs => 3, ensemble => 3, metric => 'auc', space => "
    "'{\"batch_size\": 16}'"
)


@pytest.fixture(scope="module")
def items(bench: Workbench) -> str:
    with bench.connection.cursor() as cursor:
        cursor.execute(ITEMS)
    return "items"


def test_a_margin_covers_nine_tenths_of_what_is_predicted(bench: Workbench, items: str) -> None:
    """Of all rows, and of those of each group by its own model."""
    (run_id, *_), *_ = bench.rows(
        f"SELECT * FROM cerebro.train('{items}', 'amount', 'numbers', {OPTIONS}, {NUMBERS})"
    )
    board = "SELECT group_value, validation FROM cerebro.leaderboard WHERE run_id = %s"
    logged: dict[str | None, float] = dict(bench.rows(board, run_id))
    margins: dict[str | None, float] = dict(
        bench.rows("SELECT group_value, margin FROM cerebro.model_group")
    )
    assert margins.keys() == {"a", "b"}
    distances = """
        SELECT array_agg(abs(t.amount::float8 - p.prediction::float8))
        FROM cerebro.predict('numbers', 'later', 'id') p JOIN later t ON t.id::text = p.id
            WHERE t.shop = %s"""
    for group, margin in margins.items():
        found = bench.value(distances, group)
        wanted = ErrorQuantiles.from_errors(found).find_margin(USUAL_LEVEL)
        assert margin == pytest.approx(wanted, rel=1e-5)
        rmse = (sum(each**2 for each in found) / len(found)) ** 0.5
        assert logged[group] == pytest.approx(rmse, rel=1e-5)


def test_a_value_that_no_log_has_is_that_over_the_raw_rows(bench: Workbench, items: str) -> None:
    bench.rows(f"SELECT * FROM cerebro.train('{items}', 'much', 'classes', {OPTIONS}, {CLASSES})")
    evaluated = (
        "SELECT value FROM cerebro.evaluate('classes', 'later') WHERE metric = 'auc' AND class IS "
        "NULL"
    )
    value = bench.value("SELECT value FROM cerebro.model_version WHERE model = 'classes'")
    assert value == pytest.approx(bench.value(evaluated), abs=1e-6)
