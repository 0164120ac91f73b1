"""cerebro.importance: how much worse a model gets where a column of the raw table is shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from roles import another_role, refused
from versions import BatchResult, trained
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Measure

ROWS = 5200
"""More than are looked at."""
NAME = 'la"st %s'
TILLS = f"""
    CREATE TABLE tills AS
    SELECT n AS id, (ARRAY['a', 'b', 'c'])[n * 7919 % 3 + 1] AS shop, 5 AS fixed,
        sin(n * n) AS noise,
           CASE WHEN n % 5 > 0 THEN timestamp '2020-01-01' + (n * 7919 % 1460) * interval '1 day'
               END AS "la""st %s",
           n * 7919 % 3 * 10 + CASE WHEN n % 5 = 0 THEN 25 ELSE n * 7919 % 1460 / 80 END + cos(n) AS
               taken,
           CASE WHEN n % 17 > 0 THEN CASE WHEN n * 7919 % 3 = 1 THEN 'much' ELSE 'little' END END AS
               sold
    FROM generate_series(1, {ROWS}) n;
    ALTER TABLE tills ADD PRIMARY KEY (id);
    CREATE VIEW takings AS SELECT id, shop, fixed, noise, "la""st %s", taken FROM tills;
    CREATE VIEW sales AS SELECT id, shop, fixed, noise, "la""st %s", sold FROM tills
        WHERE sold IS NOT NULL"""
QUERY = (
    "SELECT column_name, importance, importance_error, metric, rows FROM cerebro.importance(%s, %s)"
)
Found = dict[str, tuple[Any, ...]]


@pytest.fixture(scope="module")
def models(bench: Workbench) -> list[BatchResult]:
    """A model of a number and one of classes, each with columns that say nothing."""
    bench.rows(TILLS)
    floats, fast = Measure(20.0, 9.0, 0.0, 46.0), {"lr": 0.1}
    return [
        trained(
            bench,
            "taken",
            "takings",
            "taken",
            epochs=2,
            floats=floats,
            template="linear",
            params=fast,
        ),
        trained(bench, "sold", "sales", "sold", epochs=1, template="linear", params=fast),
    ]


@pytest.fixture
def session(bench: Workbench, models: list[BatchResult]) -> Iterator[Workbench]:
    bench.messages()
    yield bench
    bench.rows("ROLLBACK; RESET ALL")


def found(session: Workbench, model: str, source: str = "tills") -> Found:
    rows = session.rows(QUERY, model, source)
    assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)
    return {row[0]: row[1:] for row in rows}


@pytest.fixture(scope="module")
def taken(bench: Workbench, models: list[BatchResult]) -> Found:
    """The importances of the model of a number, over the whole table."""
    return found(bench, "taken")


@pytest.fixture(scope="module")
def sold(bench: Workbench, models: list[BatchResult]) -> Found:
    """The importances of the model of classes, over the whole table."""
    return found(bench, "sold")


def test_columns_that_decide_count_and_others_do_not(
    session: Workbench, taken: Found, sold: Found
) -> None:
    assert set(taken) == set(sold) == {"shop", "noise", NAME}, "a column of one value is no input"
    assert {row[2:] for row in taken.values()} == {("rmse", 5000)}
    known = session.value("SELECT count(*) FROM sales")
    assert {row[2:] for row in sold.values()} == {("log_loss", min(known, 5000))}
    for row in (taken["shop"], taken[NAME], sold["shop"]):
        assert row[0] > 10 * row[1] > 0
    for of, names in ((taken, ("noise",)), (sold, ("noise", NAME))):
        for name in names:
            assert abs(of[name][0]) < max(6 * of[name][1], 0.05 * of["shop"][0])


def test_the_importance_is_what_shuffled_rows_lose(session: Workbench, taken: Found) -> None:
    """A column is shuffled here by hand, once, and all rows are predicted: the error says how far
    apart both are.
    """
    shuffled = (
        'SELECT id, row_number() OVER (ORDER BY md5(id::text)) AS n, "la""st %s" AS '
        "moved FROM takings"
    )
    session.rows(f"""
        CREATE OR REPLACE VIEW mixed AS
        SELECT t.id, t.shop, t.fixed, t.noise, o.moved AS "la""st %s", t.taken
        FROM (SELECT t.*, row_number() OVER (ORDER BY id) AS n FROM takings t) t JOIN ({shuffled}) o
            ON o.n = t.n""")
    rmse = "SELECT value FROM cerebro.evaluate('taken', %s) WHERE metric = 'rmse'"
    lost = session.value(rmse, "mixed") - session.value(rmse, "takings")
    value, error, *_ = taken[NAME]
    assert value == pytest.approx(lost, abs=12 * error + 0.02 * lost)


def test_two_calls_say_the_same_however_rows_lie(session: Workbench, sold: Found) -> None:
    """And in whichever session, with whatever settings."""
    with closing(session.another()) as other:
        other.rows("CREATE TEMP TABLE again AS SELECT * FROM tills ORDER BY md5(id::text)")
        other.rows("ALTER TABLE again ADD PRIMARY KEY (id)")
        other.rows("SET DateStyle = German; SET TimeZone = 'Asia/Tokyo'")
        assert found(other, "sold", "again") == sold


def test_it_sees_what_the_caller_sees(session: Workbench, shared_superuser: Workbench) -> None:
    session.rows(
        "BEGIN; CREATE TEMP TABLE mine AS SELECT * FROM tills WHERE id <= 20; SET TRANSACTION "
        "READ ONLY"
    )
    known = session.value("SELECT count(*) FROM mine WHERE sold IS NOT NULL")
    assert {row[3] for row in found(session, "sold", "mine").values()} == {known}
    session.rows("ROLLBACK; CREATE OR REPLACE VIEW nothing AS SELECT * FROM tills WHERE false")
    assert not found(session, "sold", "nothing")
    assert any("no row has a value of sold" in text for text in session.messages())
    refused(session, QUERY, "sold", "takings", code="42703", words="sold")
    with another_role(session, shared_superuser, "auditor") as other:
        refused(other, QUERY, "sold", "tills", code="42704")


def test_the_places_of_columns_are_all_inputs_once(models: list[BatchResult]) -> None:
    for recipe in (model.recipe for model in models):
        numbers, codes = (
            [place for each in recipe.places for place in each.inputs.get(name, ())]
            for name in ("numbers", "codes")
        )
        assert sorted(numbers) == list(range(len(recipe.numbers)))
        assert sorted(codes) == list(range(len(recipe.cardinalities)))
        assert [each.column for each in recipe.places] == [each.column for each in recipe.inputs]
