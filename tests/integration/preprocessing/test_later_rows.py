"""Of the last rows, which are held back, nothing is extrapolated: what only grows is no input."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.learning.fit_recipe import FittedRecipe, fit_columns
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.expression import Expression

RENTALS = """
    CREATE TABLE rentals AS
    SELECT n AS ticket, -n / 10.0 AS countdown, n::numeric * n AS total, n % 24 AS slot,
           CASE WHEN n > 300 THEN 1 ELSE 0 END AS reopened, (n * 7919 % 1009) / 10.0 AS price,
           timestamp '2024-03-01' + n * {step} AS hired,
           timestamptz '2024-03-01 12:00+00' + n * {step} AS booked,
           (date '2024-03-01' + n % 90) AS born,
           CASE WHEN n % 3 = 0 THEN n END AS invoice, NULL::integer AS empty,
           to_char(n * 10.5, 'FM999,999,990.00') AS so_far, n * interval '1 minute' AS uptime,
           to_char(timestamp '2024-03-01' + n * {step}, 'YYYY-MM-DD HH24:MI:SS') AS noted
    FROM generate_series(1, {rows}) n"""
HASH = Expression("pg_catalog.hashint8extended(t.ticket, 1)")


def fit(
    bench: Workbench, step: str, rows: int = 1000, types: Mapping[str, str] | None = None
) -> FittedRecipe:
    """Return the recipe of the first four fifths of the rows, which are made after each other."""
    bench.rows("DROP TABLE IF EXISTS rentals")
    bench.rows(RENTALS.format(rows=rows, step=f"interval '{step}'"))
    columns = read_columns(Session(bench), bench.value("SELECT 'rentals'::regclass::oid::bigint"))
    training = Source("rentals", Expression("t.ticket <= %s", (rows * 4 // 5,)), HASH)
    later = Source("rentals", Expression("t.ticket > %s", (rows * 4 // 5,)), HASH)
    return fit_columns(Session(bench), training, columns, types or {}, later)


def list_inputs(fitted: FittedRecipe) -> set[str]:
    return {feature.column for feature in fitted.recipe.inputs}


@pytest.mark.parametrize("rows", [1000, 60_000])
def test_a_number_that_only_grows_or_falls_is_left_out(bench: Workbench, rows: int) -> None:
    """More rows than a sample has are looked at by one."""
    fitted = fit(bench, "1 hour", rows)
    assert list_inputs(fitted) == {"slot", "reopened", "price", "hired", "booked", "born", "noted"}


def test_without_later_rows_all_of_them_are_inputs(bench: Workbench) -> None:
    fit(bench, "1 hour")
    columns = read_columns(Session(bench), bench.value("SELECT 'rentals'::regclass::oid::bigint"))
    source = Source("rentals", Expression("true"), HASH)
    inputs = list_inputs(fit_columns(Session(bench), source, columns, {}))
    assert {"countdown", "total", "invoice", "so_far", "uptime"} < inputs


@pytest.mark.parametrize(
    ("step", "parts"),
    [
        ("1 minute", []),
        ("1 hour", ["dow", "hour"]),
        ("8 hours", ["day", "dow", "hour"]),
        ("1 day", ["month", "day", "dow"]),
    ],
)
def test_times_are_inputs_by_what_recurs(bench: Workbench, step: str, parts: list[str]) -> None:
    """A part is learned from if the times of the training rows span two of its cycles."""
    fitted = fit(bench, step)
    features = {feature.column: feature for feature in fitted.recipe.features}
    for name in ("hired", "booked", "noted"):
        feature = features[name]
        assert list(feature.parts if isinstance(feature, Moment) else ()) == parts
    notes = {remark.column: remark.text for remark in fitted.remarks}
    assert ("hired" in notes) == bool(parts)
    assert not parts or notes["hired"].startswith(f"only its {', '.join(parts)} are learned from")


def test_a_time_that_does_not_grow_stays_whole(bench: Workbench) -> None:
    features = {feature.column: feature for feature in fit(bench, "1 hour").recipe.features}
    born = features["born"]
    assert isinstance(born, Moment) and "epoch" in born.parts


def test_a_call_that_names_a_kind_is_obeyed(bench: Workbench) -> None:
    fitted = fit(bench, "1 hour", types={"ticket": "number", "hired": "moment"})
    features = {feature.column: feature for feature in fitted.recipe.features}
    hired = features["hired"]
    assert "ticket" in list_inputs(fitted)
    assert isinstance(hired, Moment) and "epoch" in hired.parts


def test_what_a_notice_says_can_be_typed(bench: Workbench) -> None:
    """Of a table whose rows are divided by time; `cerebro.predict` needs no column left out."""
    fit(bench, "8 hours")
    bench.connection.notices.clear()
    call = (
        "SELECT * FROM cerebro.train('rentals', 'price', '{}', models => '{{linear}}', configs => "
        "1, epochs => 1, seed => 1, split => 'last 0.2 by hired'{})"
    )
    bench.rows(call.format("hires", ""))
    said = "".join(bench.connection.notices)
    assert "column ticket is left out: most rows held back have values beyond" in said
    assert """types => '{"ticket": "number"}' takes it as an input""" in said
    assert """types => '{"hired": "moment"}' takes all parts""" in said
    columns = "hired, booked, noted, born, slot, reopened"
    bench.rows(f"CREATE TABLE later_rentals AS SELECT {columns} FROM rentals")
    predicted = bench.rows("SELECT * FROM cerebro.predict('hires', 'later_rentals', 'hired')")
    assert len(predicted) == 1000
    types = """{"ticket": "number", "hired": "moment"}"""
    plan = (
        "SELECT name, what FROM cerebro.plan('rentals', 'price', split => 'last 0.2 by hired'{}) "
        "WHERE section = 'column'"
    )
    assert {("ticket", "left out"), ("hired", "moment: day, dow, hour")} < set(
        bench.rows(plan.format(""))
    )
    columns_by_name: dict[str, str] = dict(bench.rows(plan.format(f", types => '{types}'")))
    assert columns_by_name["ticket"] == "number"
    assert columns_by_name["hired"].startswith("moment: epoch")
