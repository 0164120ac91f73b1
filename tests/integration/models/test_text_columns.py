"""Models of columns of texts that are numbers and dates: each call reads them as in training."""

from __future__ import annotations

import json

import pytest
from workbench import Workbench

from cerebro_db.export.recipe.rows import RawRows

LEDGER = """
    CREATE TABLE ledger AS
    SELECT n AS id, to_char(1000 + n * 37 % 9000, 'FM$9,999.00') AS price,
           replace(((n * 7919 % 1000) / 8.0)::text, '.', ',') AS weight,
           to_char(date '2023-01-01' + n * 37 % 500, 'DD.MM.YYYY') AS sold,
           CASE WHEN n % 9 > 0 THEN (n * 7919 % 101) || '%' ELSE '' END AS share,
           n * 7919 % 1000 > 500 AS heavy
    FROM generate_series(1, 400) AS n;
    CREATE VIEW typed AS
    SELECT id, translate(price, '$,', '')::numeric AS price,
           replace(weight, ',', '.')::double precision AS weight,
           to_date(sold, 'DD.MM.YYYY') AS sold,
           nullif(rtrim(share, '%'), '')::numeric AS share, heavy FROM ledger;
    CREATE VIEW broken AS
    SELECT id, price || '?' AS price, weight || ' kg' AS weight, 'in May' AS sold, share, heavy
    FROM ledger"""
TRAIN = """
    SELECT validation FROM cerebro.train('ledger', 'heavy', 'ledger', models => '{linear}',
        columns => 'price, weight, sold, share', configs => 1, epochs => 60, ensemble => 1,
        refit => 'none',
        seed => 1, split => 'random 0.25')"""
PREDICTED = "SELECT p.id, p.probabilities FROM cerebro.predict('ledger', %s, 'id') p ORDER BY p.id"


@pytest.fixture(scope="module")
def validation(bench: Workbench) -> float:
    """The accuracy of a model of texts, by which all tests of this file predict."""
    bench.rows(LEDGER)
    return float(bench.value(TRAIN))


def test_numbers_in_texts_are_learned_from(bench: Workbench, validation: float) -> None:
    """By their order: the texts of a weight are all but different in each row."""
    assert validation > 0.9
    features = bench.rows("SELECT column_name, kind FROM cerebro.feature")
    assert dict(features) == {
        "price": "number",
        "weight": "number",
        "sold": "moment",
        "share": "number",
    }


def test_true_numbers_and_dates_are_taken_as_such(bench: Workbench, validation: float) -> None:
    assert bench.rows(PREDICTED, "typed") == bench.rows(PREDICTED, "ledger")


def test_a_text_in_no_format_is_missing(bench: Workbench, validation: float) -> None:
    bench.rows("""
        CREATE VIEW unknown AS
        SELECT id, NULL::text AS price, NULL::text AS weight, NULL::date AS sold, share FROM ledger
        """)
    assert bench.rows(PREDICTED, "broken") == bench.rows(PREDICTED, "unknown")


@pytest.mark.postgresql("on Greenplum predict_row is not for the rows of tables")
@pytest.mark.parametrize("source", ["ledger", "typed", "broken"])
def test_a_record_is_read_like_a_row(bench: Workbench, validation: float, source: str) -> None:
    """Of texts, and of numbers and dates of JSON."""
    rows = bench.rows(f"""
        SELECT r.id::text, cerebro.predict_row('ledger', to_jsonb(r)) -> 'probabilities'
        FROM {source} r WHERE r.id <= 40 ORDER BY r.id::text""")
    expected = [row for row in bench.rows(PREDICTED, source) if int(row[0]) <= 40]
    assert rows == expected


def test_other_calls_read_texts_too(bench: Workbench, validation: float) -> None:
    accuracy = "SELECT value FROM cerebro.evaluate('ledger', %s) WHERE metric = 'accuracy'"
    assert bench.value(accuracy, "ledger") == bench.value(accuracy, "typed") > 0.9
    drift = "SELECT sum(d.psi) FROM cerebro.drift('ledger', %s) d"
    assert bench.value(drift, "ledger") == bench.value(drift, "typed")


def test_the_exported_recipe_reads_texts_and_values_alike(
    bench: Workbench, validation: float
) -> None:
    query = "SELECT spec -> 'train' -> 'recipe' FROM cerebro.run WHERE run_id = %s"
    recipe = bench.value(query, bench.newest_run())
    rows = RawRows.of(json.dumps(recipe))
    names = ["price", "weight", "sold", "share"]

    def read(source: str) -> bytes:
        table = bench.rows(f"SELECT {', '.join(names)} FROM {source} ORDER BY id")
        cells = zip(*table, strict=True)
        return rows.inputs(dict(zip(names, cells, strict=True)))["numbers"].tobytes()

    assert read("ledger") == read("typed")
