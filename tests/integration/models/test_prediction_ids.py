"""The ids of predicted rows: of one column, of several, of a key, or a NOTICE about their lack."""

from __future__ import annotations

import psycopg2
import pytest
from followed_hints import ARGUMENT, Call, follow
from workbench import Workbench

VISITS = """
    CREATE TYPE mood AS ENUM ('calm', 'loud');
    CREATE TABLE visits AS
    SELECT n % 10 AS store, n / 10 AS nr, n % 7 AS x, n % 2 = 0 AS y, n AS "Row No",
           'a "' || n % 3 || '" b' AS label, n % 3 = 0 AS open, n * 1.50 AS amount,
           (ARRAY['calm', 'loud'])[n % 2 + 1]::mood AS felt,
           timestamptz '2024-01-31 12:00 UTC' + n * interval '1 hour' AS since,
           date '2024-01-31' + n AS day, CASE WHEN n % 4 > 0 THEN n END AS gaps
    FROM generate_series(1, 200) n;
    CREATE TABLE keyed AS TABLE visits;
    ALTER TABLE keyed ADD PRIMARY KEY (nr, store);
    CREATE TABLE single AS TABLE visits;
    ALTER TABLE single ADD PRIMARY KEY ("Row No");
    CREATE TABLE distinguished AS TABLE visits;
    CREATE UNIQUE INDEX ON distinguished (store, nr);
    CREATE UNIQUE INDEX ON distinguished (nr) WHERE store = 1;
    CREATE TABLE nameless AS SELECT x, y FROM visits"""
TRAINING = """
    SELECT FROM cerebro.train('visits', 'y', 'visitors', columns => 'x', models => '{linear}',
        configs => 1, epochs => 1, ensemble => 1, refit => 'none', seed => 1)"""
PLAIN = ("store", "nr", "label", "open", "amount", "felt", "gaps")
"""Columns whose values are themselves in an id of several columns."""


@pytest.fixture(scope="module")
def visits(bench: Workbench) -> Workbench:
    bench.rows(VISITS)
    bench.rows(TRAINING)
    bench.messages()
    return bench


def count_joined(bench: Workbench, source: str, id_col: str | None, expression: str) -> int:
    """Return the rows that a prediction is joined with."""
    return int(
        bench.value(
            f'SELECT count(DISTINCT t."Row No") FROM {source} t JOIN '
            f"cerebro.predict('visitors', '{source}', %s) p ON p.id = {expression}",
            id_col,
        )
    )


def notices(bench: Workbench, source: str, *arguments: object) -> list[str]:
    """Return what predictions of a source say about ids."""
    bench.messages()
    more = ", %s" * len(arguments)
    bench.rows(f"SELECT * FROM cerebro.predict('visitors', '{source}'{more})", *arguments)
    return [message for message in bench.messages() if "id is NULL" in message]


@pytest.mark.parametrize("first", PLAIN)
def test_an_id_of_several_columns_is_an_array_of_json(visits: Workbench, first: str) -> None:
    joined = count_joined(
        visits, "visits", f'{first}, "Row No"', f'jsonb_build_array(t.{first}, t."Row No")::text'
    )
    assert joined == 200


@pytest.mark.parametrize("first", ["since", "day"])
def test_points_in_time_have_the_text_of_the_callers_session(visits: Workbench, first: str) -> None:
    visits.rows("SET timezone = 'Asia/Tokyo'; SET datestyle = 'SQL, DMY'")
    try:
        joined = count_joined(
            visits, "visits", f"{first}, nr", f"jsonb_build_array(t.{first}::text, t.nr)::text"
        )
    finally:
        visits.rows("RESET timezone; RESET datestyle")
    assert joined == 200


def test_an_id_of_one_column_is_its_text(visits: Workbench) -> None:
    assert count_joined(visits, "visits", '"Row No"', 't."Row No"::text') == 200
    assert count_joined(visits, "single", None, 't."Row No"::text') == 200
    assert not notices(visits, "single")


def test_a_key_of_several_columns_is_an_id_in_the_order_of_the_key(visits: Workbench) -> None:
    assert count_joined(visits, "keyed", None, "jsonb_build_array(t.nr, t.store)::text") == 200
    assert not notices(visits, "keyed")
    explained = visits.value(
        "SELECT count(DISTINCT t.\"Row No\") FROM keyed t JOIN cerebro.attribution('visitors', "
        "'keyed') a ON a.id = jsonb_build_array(t.nr, t.store)::text"
    )
    assert explained == 200


@pytest.mark.parametrize(("source", "columns"), [("distinguished", "'store, nr'")])
def test_a_table_without_a_key_says_once_what_to_name(
    visits: Workbench, source: str, columns: str
) -> None:
    (message,) = notices(visits, source)
    assert dict(ARGUMENT.findall(message)) == {"id_col": columns}
    assert not notices(visits, source, columns[1:-1])
    rows = visits.rows(f"SELECT p.id FROM cerebro.predict('visitors', '{source}', {columns}) p")
    assert all(row[0] for row in rows) and len({*rows}) == len(rows)


@pytest.mark.parametrize("source", ["visits", "nameless"])
def test_a_table_without_a_unique_id_is_offered_its_rows(visits: Workbench, source: str) -> None:
    """A column is no id because of its name: `nr` of visits has 20 values in 200 rows."""
    (message,) = notices(visits, source)
    assert not ARGUMENT.findall(message) and "cerebro.predict_rows" in message


@pytest.mark.parametrize(
    "id_col", ["'Row No'", "'ROW NO'", "'store, Row No'", "'store * 1000 + nr'"]
)
def test_a_wrong_id_col_has_a_hint_that_works(visits: Workbench, id_col: str) -> None:
    arguments = {"model": "'visitors'", "source": "'visits'", "id_col": id_col}
    (rows,) = follow(visits, Call("cerebro.predict", arguments))
    assert len(rows) == 200 and all(row[0] for row in rows)


def test_other_columns_are_refused(visits: Workbench) -> None:
    with pytest.raises(psycopg2.errors.UndefinedColumn, match="which id_col names"):
        visits.rows("SELECT FROM cerebro.predict('visitors', 'visits', 'store, gone')")
