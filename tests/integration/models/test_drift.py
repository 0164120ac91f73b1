"""How far rows lie from those that a model was trained on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from roles import another_role, refused
from trials import trials
from workbench import Workbench

from cerebro_plpy.preprocessing.kinds.feature import VALUE
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.drift_profile import make_edges, measure_bins
from cerebro_plpy.preprocessing.values.scale import Scale

GUESTS = """
    CREATE TABLE guests AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS deck,
           CASE WHEN n % 5 > 0 THEN date '2020-01-01' + n * 31 % 400 END AS booked,
               1 + n * 31 % 97 / 10.0 AS "f%s",
           n % 2 = 0 AS came
    FROM generate_series(1, 900) AS n"""
Drift = dict[str, dict[str, Any]]
SHIFTED = {
    "age": ('age + 30 AS age, deck, booked, "f%s"', 0.25),
    "booked": ('age, deck, booked + 366 AS booked, "f%s"', 0.25),
    "f%s": ('age, deck, booked, -"f%s" AS "f%s"', 0.25),
    "deck": ("age, 'b' AS deck, booked, \"f%s\"", 0.25),
}


@pytest.fixture(scope="module")
def guests(bench: Workbench) -> Iterator[str]:
    bench.rows(GUESTS)
    bench.rows(
        "SELECT * FROM cerebro.train('guests', 'came', models => '{linear}', configs => 1, epochs "
        "=> 1, workers => 1, refit => 'none')"
    )
    yield "guests"
    bench.rows("SELECT cerebro.drop_model('guests_came')")


def drift(bench: Workbench, source: str, model: str = "guests_came") -> Drift:
    found = bench.rows("SELECT to_jsonb(d) FROM cerebro.drift(%s, %s) d", model, source)
    return {row["column_name"]: row for (row,) in found}


def test_the_rows_of_training_lie_where_they_lay(bench: Workbench, guests: str) -> None:
    found = drift(bench, guests)
    kinds = {"age": "number", "deck": "category", "booked": "moment", "f%s": "number"}
    assert {name: row["kind"] for name, row in found.items()} == kinds
    for name, row in found.items():
        share = bench.value(f'SELECT avg(("{name}" IS NULL)::integer)::float8 FROM guests')
        assert 0 <= row["psi"] < 0.1 and row["missing"] == pytest.approx(share), name
        assert row["training_missing"] == pytest.approx(share, abs=0.05), name
        assert row["new_categories"] == (0 if name == "deck" else None)


def test_what_is_kept_is_of_all_training_rows_and_of_no_others(
    bench: Workbench, guests: str
) -> None:
    """As long as these are no more than are looked at."""
    profile, rows = bench.row(
        "SELECT profile, training_rows FROM cerebro.version_log WHERE model = 'guests_came'"
    )
    for name, column in profile["columns"].items():
        for part in column["parts"].values():
            assert column["missing"] + sum(part["counts"]) == rows, name
    assert rows < bench.value("SELECT count(*) FROM guests")


@pytest.mark.parametrize("column", SHIFTED)
def test_the_column_that_moved_comes_first(bench: Workbench, guests: str, column: str) -> None:
    """Of a view, in a transaction that only reads."""
    columns, least = SHIFTED[column]
    bench.rows(f"CREATE OR REPLACE VIEW moved AS SELECT {columns} FROM guests")
    bench.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    found = drift(bench, "moved")
    bench.rows("ROLLBACK; DROP VIEW moved")
    assert next(iter(found)) == column and found[column]["psi"] > least
    assert all(row["psi"] < 0.1 for name, row in found.items() if name != column)
    assert column != "booked" or found[column]["part"] in ("epoch", "year")


def test_what_is_missing_and_what_is_new_are_told_apart(bench: Workbench, guests: str) -> None:
    """Of rows that only the caller's transaction sees."""
    bench.rows("BEGIN; CREATE TEMPORARY TABLE late AS SELECT * FROM guests")
    bench.rows(
        "UPDATE late SET deck = CASE id % 3 WHEN 0 THEN 'new' WHEN 1 THEN 'newer' END, age = NULL"
    )
    found = drift(bench, "late")
    bench.rows("TRUNCATE late")
    empty = drift(bench, "late")
    bench.rows("ROLLBACK")
    assert (found["deck"]["missing"], found["deck"]["new_categories"]) == (pytest.approx(1 / 3), 1)
    assert (found["age"]["missing"], found["age"]["psi"]) == (1, None)
    assert all(
        row[name] is None for row in empty.values() for name in ("psi", "missing", "new_categories")
    )


def test_wrong_calls_are_refused(
    bench: Workbench, shared_superuser: Workbench, guests: str
) -> None:
    wrong = {
        "NULL, 'guests'": "22004",
        "'nobody', 'guests'": "42704",
        "'guests_came', 'nobody'": "42P01",
        "'guests_came', NULL": "22004",
        "'guests_came', '(SELECT 1)'": "42602",
        "'guests_came', 'pg_catalog.pg_class'": "42703",
    }
    for arguments, sqlstate in wrong.items():
        refused(bench, f"SELECT * FROM cerebro.drift({arguments})", code=sqlstate)
    with another_role(bench, shared_superuser, "outsider") as outsider:
        refused(
            outsider,
            "SELECT * FROM cerebro.drift('guests_came', 'pg_catalog.pg_class')",
            code="42704",
        )


def test_a_profile_that_was_changed_is_refused(
    bench: Workbench, guests: str, shared_superuser: Workbench
) -> None:
    kept = bench.value("SELECT profile::text FROM cerebro.version_log WHERE model = 'guests_came'")
    change = "UPDATE cerebro.version_log SET profile = %s::jsonb WHERE model = 'guests_came'"
    for wrong, state in (({"version": 1, "columns": {}}, "XX001"), (None, "55000")):
        shared_superuser.rows(change, wrong and json.dumps(wrong))
        refused(bench, "SELECT * FROM cerebro.drift('guests_came', 'guests')", code=state)
    shared_superuser.rows(change, kept)
    assert drift(bench, guests)


def test_newer_rows_are_learned_from_beside_the_others(bench: Workbench, guests: str) -> None:
    """They are those that a growing column tells; the packed rows of before are copied, and not
    made anew.
    """
    refresh = (
        "SELECT run_id, version, training_rows + validation_rows FROM "
        "cerebro.refresh('guests_came', since => %s)"
    )
    assert not bench.rows(refresh, "booked") and not bench.rows(refresh, None), "no rows are newer"
    bench.rows("ALTER TABLE guests ADD place point")
    refused(bench, refresh, "place", code="42804", words="expected one that grows")
    bench.rows("ALTER TABLE guests DROP place")
    bench.rows(
        'INSERT INTO guests SELECT id + 900, age, deck, booked + 400, "f%s", came FROM guests '
        "WHERE id <= 40"
    )
    (first,) = bench.row("SELECT run_id FROM cerebro.model_version WHERE model = 'guests_came'")
    run_id, version, rows = bench.row(refresh, "booked")
    assert (version, rows) == (
        2,
        900 + bench.value("SELECT count(booked) FROM guests WHERE id > 900"),
    )
    for side in ("training", "validation"):
        old, new = (f"cerebro_state.r{run}_{side}" for run in (first, run_id))
        assert not bench.rows(f"TABLE {old} EXCEPT TABLE {new}")
        assert bench.rows(f"TABLE {new} EXCEPT TABLE {old}")
    bench.rows(
        f"UPDATE guests SET age = 0 WHERE id = 1; DROP TABLE cerebro_state.r{run_id}_training"
    )
    findings = bench.rows("SELECT what, ok, detail FROM cerebro.verify('guests_came', '2')")
    details = {what: detail for what, ok, detail in findings if not ok}
    assert details["source"].startswith("its rows have changed")
    assert "new ones were packed beside them" in details["state"]


NUMBERS = st.lists(
    st.one_of(st.none(), st.floats(allow_nan=True), st.sampled_from([0.0, 1.0])), max_size=30
)


@trials(50)
@given(st.lists(st.floats(-1e9, 1e9), max_size=11), NUMBERS)
def test_the_server_counts_bins_as_they_are_meant(
    bench: Workbench, sample: list[float], rows: list[float]
) -> None:
    edges = make_edges(sorted(sample))
    recipe = Recipe((Number("n", "real", Scale(0.0, 1.0), True),))
    session = Session(bench)
    bench.rows(
        "CREATE TEMPORARY TABLE IF NOT EXISTS numbers (n double precision); TRUNCATE numbers"
    )
    bench.rows("INSERT INTO numbers SELECT unnest(%s::double precision[])", rows)
    found = measure_bins(session, "numbers", recipe, {("n", VALUE): edges})
    present = [n for n in rows if n is not None and n == n]
    expected = [
        sum(sum(edge <= n for edge in edges) == place for n in present)
        for place in range(len(edges) + 1)
    ]
    assert found.missing["n"] == len(rows) - len(present)
    assert list(found.parts["n", VALUE].counts) == expected
