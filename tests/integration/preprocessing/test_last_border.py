"""A split by the last rows begins where the share that is held back is nearest to the requested
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import psycopg2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from workbench import Workbench

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.rows.last_border import Border, find_border
from cerebro_plpy.preprocessing.rows.opened_source import OpenedSource
from cerebro_plpy.preprocessing.rows.split import Split, side_conditions
from cerebro_plpy.preprocessing.values.columns import read_columns

LOADS = """
    CREATE TABLE loads AS
    SELECT n AS id, n % 17 AS x, n % 17 > 8 AS late, date '2024-06-30' AS loaded,
           CASE WHEN n <= 30 THEN date '2024-01-01' + n ELSE date '2024-06-30' END AS booked,
           CASE WHEN n % 4 = 0 THEN date '2024-01-01' + n END AS paid, NULL::date AS never,
           to_char(date '2023-01-01' + n, 'DD.MM.YYYY') AS "Dated",
           to_char(date '2023-01-01' + n, 'YYYY-MM-DD') AS iso_date, 'no ' || n AS label,
           (n * 3)::text AS digits,
           CASE WHEN n % 10 = 0 THEN 'NaN' ELSE n::float8 END AS stamp
    FROM generate_series(1, 200) n"""
QUICK = (
    "columns => 'x', models => '{linear}', configs => 1, epochs => 2, seed => 1, refit => 'none'"
)
CASTS = {
    "integer": "v",
    "date": "date '2024-01-01' + v",
    "text": "'day ' || lpad(v::text, 3, '0')",
    "double precision": "v / 8.0::double precision",
}
"""Types of columns, with an expression that keeps the order of numbers."""
VALUES = st.lists(st.none() | st.integers(0, 6), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def loads(bench: Workbench) -> Workbench:
    bench.rows(LOADS)
    bench.rows("CREATE TABLE drawn (v integer, y integer)")
    return bench


@pytest.fixture
def session(loads: Workbench) -> Iterator[Workbench]:
    loads.messages()
    yield loads
    loads.rows("ROLLBACK")


def held_back_counts(values: Sequence[int | None]) -> list[int]:
    """Return how many rows each possible border holds back."""
    known = [value for value in values if value is not None]
    counts = {sum(other >= value for other in known) for value in known}
    return sorted(counts - {len(known)})


@given(VALUES, st.sampled_from([0.05, 0.2, 0.5, 0.9]), st.sampled_from(sorted(CASTS)))
def test_no_border_is_nearer_to_the_share(
    loads: Workbench, values: list[int | None], share: float, type_name: str
) -> None:
    """Rows without a target do not count, and rows without a value are trained on."""
    loads.rows(
        f"""
        TRUNCATE drawn; INSERT INTO drawn SELECT unnest(%s::integer[]), 1;
        INSERT INTO drawn SELECT 9, NULL FROM generate_series(1, 9);
        DROP VIEW IF EXISTS dated; CREATE VIEW dated AS SELECT {CASTS[type_name]} AS v, y FROM drawn
        """,
        values,
    )
    reader = Session(loads)
    columns = read_columns(reader, loads.value("SELECT 'dated'::regclass::oid::bigint"))
    opened = OpenedSource("dated", columns, learned=(), identity=())
    split = Split("last", share, "v")
    possible = held_back_counts(values)
    if not possible:
        with pytest.raises(InvalidParameter, match="split is 'last"):
            find_border(reader, "train", opened, split, "t.y IS NOT NULL")
        return
    border = find_border(reader, "train", opened, split, "t.y IS NOT NULL")
    known = sum(value is not None for value in values)
    assert (border.rows, border.missing) == (known, len(values) - known)
    distances = [abs(count - share * known) for count in possible]
    assert border.held_back in possible
    assert abs(border.held_back - share * known) == pytest.approx(min(distances))
    sides = side_conditions(split, columns, 1, border.bound)
    for side, rows in ((sides.validation, border.held_back), (sides.training, len(values))):
        statement = f"SELECT count(*) FROM dated t WHERE t.y IS NOT NULL AND {side.text}"
        ((count,),) = reader.run(statement, side.values)
        assert count == rows - border.held_back * (side is sides.training)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("loaded", "column 'loaded' is 2024-06-30 in all 200 rows with a value: no border"),
        ("never", "column 'never' is NULL in all 200 rows"),
    ],
)
def test_a_column_without_a_border_is_refused_with_a_split_that_works(
    session: Workbench, column: str, words: str
) -> None:
    plan = f"SELECT * FROM cerebro.plan('loads', 'late', split => %s, {QUICK})"
    with pytest.raises(psycopg2.Error) as error:
        session.rows(plan, f"last 0.2 by {column}")
    assert error.value.pgcode == "22023" and words in str(error.value)
    assert "split => 'random 0.2'" in (error.value.diag.message_hint or "")
    session.rows(plan, "random 0.2")


def explain_rows(session: Workbench, column: str) -> dict[str, tuple[str, str]]:
    query = f"""
        SELECT name, what, why
        FROM cerebro.plan('loads', 'late', split => 'last 0.2 by {column}', {QUICK})
        WHERE section = 'rows'"""
    return {name: (what, why) for name, what, why in session.rows(query)}


def test_the_share_that_is_asked_for_is_exact_where_values_differ(session: Workbench) -> None:
    rows = explain_rows(session, "id")
    assert (rows["training"][0], rows["validation"][0]) == ("160 rows", "40 rows")
    assert rows["border"] == ("from 161 on", "the share of the rows held back is 0.2")


def test_a_share_that_is_far_from_it_is_told_of(session: Workbench) -> None:
    words = (
        'last 0.2 by "booked" holds back 170 of 200 rows, a share of 0.85: the border, 2024-06-30, '
        "is the nearest one, because rows with the same value stay together"
    )
    rows = explain_rows(session, "booked")
    assert rows["border"] == ("from 2024-06-30 on", words)
    call = f"cerebro.train('loads', 'late', 'by_booking', split => 'last 0.2 by booked', {QUICK})"
    session.rows(f"SELECT * FROM {call}")
    assert [text for text in session.messages() if words in text] == [f"NOTICE:  {words}\n"]
    # Later versions keep the border, whatever the rows are by then.
    session.rows("INSERT INTO loads SELECT id + 200, x, late, loaded, '2024-08-01' FROM loads")
    session.rows(f"SELECT * FROM {call}")
    assert not any("holds back" in text for text in session.messages())
    query = "SELECT validation_rows FROM cerebro.model_version WHERE model = 'by_booking'"
    assert session.rows(f"{query} ORDER BY version") == [(170,), (370,)]
    session.rows("DELETE FROM loads WHERE id > 200")


def test_rows_without_a_value_are_trained_on_and_counted(session: Workbench) -> None:
    rows = explain_rows(session, "paid")
    assert rows["without a value"] == ("150 rows", "their paid is NULL: they are trained on")
    assert (rows["training"][0], rows["validation"][0]) == ("190 rows", "10 rows")


@pytest.mark.parametrize(
    ("column", "type_name", "noun"), [("Dated", "date", "dates"), ("digits", "numeric", "numbers")]
)
def test_texts_that_are_sorted_otherwise_than_what_they_are_come_with_a_cast(
    session: Workbench, column: str, type_name: str, noun: str
) -> None:
    _, reason = explain_rows(session, f'"{column}"')["border"]
    assert f"it is sorted as text, but its texts look like {noun}. In a view, write " in reason
    (item,) = re.findall(r"write (.*) \(.*\), and divide rows by that", reason)
    name = quote_identifier(column)
    types = f"SELECT DISTINCT pg_typeof(t.{name})::text FROM (SELECT {item} FROM loads) t"
    assert session.value(types) == type_name


@pytest.mark.parametrize("column", ["iso_date", "label", "booked"])
def test_other_columns_are_sorted_as_they_should_be(session: Workbench, column: str) -> None:
    _, reason = explain_rows(session, column)["border"]
    assert "sorted as text" not in reason


def test_what_is_not_a_number_is_not_the_newest(session: Workbench) -> None:
    rows = explain_rows(session, "stamp")
    assert rows["border"][0] == "from 161 on"
    assert rows["without a value"] == ("20 rows", "their stamp is NULL: they are trained on")
    assert (rows["training"][0], rows["validation"][0]) == ("164 rows", "36 rows")


def test_a_border_counts_rows_with_a_value_only() -> None:
    assert Border("a", 5, 20, 80).share == 0.25
