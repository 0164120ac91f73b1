"""A row says by itself on which side it is, whatever other rows there are."""

from __future__ import annotations

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.features.split import Split, read_split, sides

ROWS = 10_000
SALES = """
    CREATE TABLE sales AS
    SELECT n AS id, n % 1000 AS customer, CASE WHEN n % 100 > 0 THEN date '2020-01-01' + n END AS day,
           CASE n % 4 WHEN 0 THEN 'Validation' WHEN 1 THEN 'test' ELSE 'Training' END AS fold, n % 5 = 0 AS held
    FROM generate_series(1, 10000) AS n"""


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    bench.rows(SALES)
    return Session(bench)


def trained(
    session: Session, split: Split, *named: str, seed: int = 1, bound: str | None = None, of: str = ""
) -> set[int]:
    side = sides(split, named, seed, bound).training
    return {number for (number,) in session.run(f"SELECT t.id FROM sales t WHERE {side.text} {of}", side.values)}


def test_a_share_is_held_back_and_it_depends_on_the_seed_alone(session: Session) -> None:
    split = read_split("train", "random 0.3")
    first = trained(session, split, "id")
    assert 0.68 < len(first) / ROWS < 0.72
    assert trained(session, split, "id") == first != trained(session, split, "id", seed=2)
    assert trained(session, split, "id", of="AND t.id % 7 = 0") == {number for number in first if number % 7 == 0}


def test_rows_of_a_group_are_on_one_side(session: Session) -> None:
    split = read_split("train", "group customer")
    first = trained(session, split, "customer")
    assert 0.75 < len(first) / ROWS < 0.85
    customers = {number % 1000 for number in first}
    assert len(first) == sum(number % 1000 in customers for number in range(1, ROWS + 1))


def test_rows_from_a_day_on_are_held_back(session: Session) -> None:
    """And those that have no day are trained on: nobody knows that they are of later."""
    split = read_split("train", 'last 0.25 by "day"')
    assert split == Split("last", 0.25, "day")
    first = trained(session, split, "id", bound="2025-01-01")
    assert {number for number in range(1, ROWS + 1) if number % 100 == 0} <= first
    days = session.run("SELECT max(t.day) < '2025-01-01' FROM sales t WHERE t.id = ANY (%s)", (list(first),))
    assert days == [(True,)]


@pytest.mark.parametrize(("column", "share"), [("fold", 0.5), ("held", 0.8)])
def test_a_column_says_it(session: Session, column: str, share: float) -> None:
    assert len(trained(session, read_split("train", f"column {column}"), "id")) == share * ROWS


@pytest.mark.parametrize(
    "text", ["", "halves", "random 2", "random x", "random 0", "last 0.2", "last 1.5 by day", "column a, b", "column"]
)
def test_what_is_no_split_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="split is") as refused:
        read_split("train", text)
    assert refused.value.hint
