"""A row says by itself on which side it is, whatever other rows there are."""

from __future__ import annotations

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.preprocessing.rows import split as split_rules
from cerebro_plpy.preprocessing.rows.split import (
    Split,
    divide_by_value,
    has_copies,
    read_split,
    side_conditions,
    table_with_copies,
)
from cerebro_plpy.preprocessing.values.columns import read_columns

ROWS = 10_000
SALES = """
    CREATE TABLE sales AS
    SELECT n AS id, n % 1000 AS customer, CASE WHEN n % 100 > 0 THEN date '2020-01-01' + n END AS
        day,
           CASE n % 4 WHEN 0 THEN 'Validation' WHEN 1 THEN 'test' ELSE 'Training' END AS fold,
               n % 5 = 0 AS held
    FROM generate_series(1, 10000) AS n"""
TICKETS = """
    CREATE TABLE tickets AS
    SELECT n % 2 AS sex, (ARRAY['1', '2', NULL])[n % 3 + 1] AS class, point(1, 2) AS copy,
           '%s' AS "a ""%s"" {}", n % 2 > 0 AS "Copy_"
    FROM generate_series(1, 6000) AS n"""


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(SALES)
    bench.rows(TICKETS)
    return Session(bench)


def trained(
    session: Session,
    split: Split,
    *named: str,
    seed: int = 1,
    bound: str | None = None,
    of: str = "",
) -> set[int]:
    columns = read_columns(session, session.run("SELECT 'sales'::regclass::oid::bigint")[0][0])
    keyed = [each._replace(key=each.name in named) for each in columns]
    side = side_conditions(split, keyed, seed, bound).training
    return {
        number
        for (number,) in session.run(
            f"SELECT t.id FROM sales t WHERE {side.text} {of}", side.values
        )
    }


def test_a_share_is_held_back_and_it_depends_on_the_seed_alone(session: Session) -> None:
    split = read_split("train", "random 0.3")
    first = trained(session, split, "id")
    assert 0.68 < len(first) / ROWS < 0.72
    assert trained(session, split, "id") == first != trained(session, split, "id", seed=2)
    assert trained(session, split, "id", of="AND t.id % 7 = 0") == {
        number for number in first if number % 7 == 0
    }


def test_rows_of_a_group_are_on_one_side(session: Session) -> None:
    split = read_split("train", "group customer")
    first = trained(session, split, "customer")
    assert 0.75 < len(first) / ROWS < 0.85
    customers = {number % 1000 for number in first}
    assert len(first) == sum(number % 1000 in customers for number in range(1, ROWS + 1))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{0}::numeric(9,1)", "{0}::numeric(9,3)"),
        ("{0}::float8", "-0.0::float8 + {0}"),
        ("to_jsonb({0}::numeric(9,1))", "to_jsonb({0}::numeric(9,2))"),
    ],
    ids=["numeric", "float8", "json"],
)
def test_equal_values_are_of_one_group(
    bench: Workbench, session: Session, first: str, second: str
) -> None:
    """However they are written; a split that an earlier version has settled stays as it was."""
    number = "(n % 97)"
    bench.rows(f"""
        DROP TABLE IF EXISTS written; CREATE TABLE written AS
        SELECT n AS id, CASE WHEN n % 2 = 0 THEN {first.format(number)} ELSE
               {second.format(number)} END AS amount FROM generate_series(1, 970) n""")
    columns = read_columns(session, bench.value("SELECT 'written'::regclass::oid::bigint"))
    split = divide_by_value(read_split("train", "group amount"), columns)
    assert str(split) == 'group "amount" of values' and read_split("train", str(split)) == split
    side = side_conditions(split, columns, 1).training
    rows = session.run(f"SELECT t.id FROM written t WHERE {side.text}", side.values)
    trained = {number for (number,) in rows}
    assert 0.6 < len(trained) / 970 < 0.95
    values = {number % 97 for number in trained}
    assert len(trained) == sum(number % 97 in values for number in range(1, 971))


def test_rows_from_a_day_on_are_held_back(session: Session) -> None:
    """And those that have no day are trained on: nobody knows that they are of later."""
    split = read_split("train", 'last 0.25 by "day"')
    assert split == Split("last", 0.25, "day")
    first = trained(session, split, "id", bound="2025-01-01")
    assert {number for number in range(1, ROWS + 1) if number % 100 == 0} <= first
    days = session.run(
        "SELECT max(t.day) < '2025-01-01' FROM sales t WHERE t.id = ANY (%s)", (list(first),)
    )
    assert days == [(True,)]


@pytest.mark.parametrize(("column", "share"), [("fold", 0.5), ("held", 0.8)])
def test_a_column_says_it(session: Session, column: str, share: float) -> None:
    assert len(trained(session, read_split("train", f"column {column}"), "id")) == share * ROWS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "halves",
        "random 2",
        "random x",
        "random 0.2 of",
        "random 0.2 copies",
        "random 0",
        "last 0.2",
        "last 1.5 by day",
        "column a, b",
        "column",
    ],
)
def test_what_is_no_split_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="split is") as refused:
        read_split("train", text)
    assert refused.value.hint


def divided(
    bench: Workbench, session: Session, table: str
) -> dict[tuple[object, ...], tuple[int, int]]:
    """Of each combination of values how many rows are trained on, and how many are held back."""
    columns = read_columns(session, bench.value("SELECT %s::regclass::oid::bigint", table))
    split = read_split("train", "random 0.3 of copies")
    side = side_conditions(split, columns, 1).training
    counted = f"""
        SELECT t.sex, t.class, count(*) FILTER (WHERE {side.text}), count(*)
            FROM {table_with_copies(table, columns, split)} t
        GROUP BY 1, 2"""
    return {
        (sex, name): (first, rows - first)
        for sex, name, first, rows in session.run(counted, side.values)
    }


def test_copies_of_a_row_are_divided_each_for_itself(bench: Workbench, session: Session) -> None:
    """However they lie; and where there are more of them, those that were there stay where they
    were.
    """
    before = divided(bench, session, "tickets")
    assert len(before) == 6 and all(600 < trained_on < 800 for trained_on, _ in before.values())
    bench.rows("CREATE TABLE turned AS SELECT * FROM tickets ORDER BY class DESC, random()")
    assert divided(bench, session, "turned") == before
    bench.rows("INSERT INTO turned SELECT * FROM tickets WHERE class = '1' LIMIT 500")
    after = divided(bench, session, "turned")
    assert all(
        now >= then for key in before for now, then in zip(after[key], before[key], strict=True)
    )
    assert sum(map(sum, after.values())) == 6500


def test_whether_rows_have_copies(
    bench: Workbench, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large tables a part of the values says it, be there ever so few of them."""
    bench.rows("CREATE TABLE alike AS SELECT 1 AS x FROM generate_series(1, 6000)")
    bench.rows("CREATE TABLE nobody (x integer)")
    for least in (split_rules.SAMPLED_ROWS, 1000):
        monkeypatch.setattr(split_rules, "SAMPLED_ROWS", least)
        for table, expected in (
            ("sales", False),
            ("tickets", True),
            ("alike", True),
            ("nobody", False),
        ):
            names = [
                each.name
                for each in read_columns(
                    session, bench.value("SELECT %s::regclass::oid::bigint", table)
                )
            ]
            assert (
                has_copies(session, table, names, bench.value(f"SELECT count(*) FROM {table}"))
                == expected
            )
