"""Targets of numbers in texts: a notice, or an error, shows the call that predicts numbers."""

from __future__ import annotations

import pytest
from followed_hints import Call, follow, read_ways
from workbench import Row, Workbench

WRITTEN = {
    "plain": "(1000.5 * (n * 37 % 200))::numeric(12, 2)::text",
    "some": "CASE WHEN n % 50 = 0 THEN '<1000' ELSE (1000 + n * 37 % 200 * 9)::text END",
    "comma": "replace((n * 37 % 200 / 4.0)::numeric(9, 2)::text, '.', ',')",
    "dollars": "to_char(n * 37 % 200 * 99, 'FM$999,990.00')",
    "blank": "CASE WHEN n % 9 = 0 THEN '' ELSE '€ ' || n * 37 % 200 || ',50' END",
}
QUICK = {"models": "'{linear}'", "configs": "1", "epochs": "2", "seed": "1"}


@pytest.fixture(scope="module")
def houses(bench: Workbench) -> str:
    columns = ", ".join(f"{text} AS {name}" for name, text in WRITTEN.items())
    bench.rows(f"""
        CREATE TABLE houses AS SELECT n * 37 % 200 AS area, {columns}, n || '.5' AS different,
            lpad((n % 90)::text, 5, '0') AS zip, (n % 90 + 1000)::text AS code
        FROM generate_series(1, 600) AS n""")
    return "houses"


def planned(target: str, **arguments: str) -> Call:
    """A plan for a target of houses."""
    named = {"source": "'houses'", "target": f"'{target}'", "columns": "'area'"}
    return Call("cerebro.plan", {**named, **QUICK, **arguments})


def target_row(rows: list[Row]) -> tuple[str, str, str]:
    """What a plan says of the target: its name, what is predicted, and why."""
    (row,) = [row for row in rows if row[0] == "target" and row[2].startswith(("cl", "re"))]
    return row[1], row[2], row[3]


def train_notices(bench: Workbench, call: Call) -> list[str]:
    bench.connection.notices.clear()
    bench.rows(str(call._replace(function="cerebro.train")))
    return list(bench.connection.notices)


@pytest.mark.parametrize("target", WRITTEN)
def test_the_hint_of_a_refused_regression_works(bench: Workbench, houses: str, target: str) -> None:
    plans = follow(bench, planned(target, task="'regression'"))
    found = {target_row(rows)[:2] for rows in plans}
    # To leave the task out predicts classes, and a view predicts numbers.
    assert found >= {(f"{target}_number", "regression: a number")}
    assert any(what.startswith("classification") for _, what in found)


def test_the_hint_for_too_many_classes_works(bench: Workbench, houses: str) -> None:
    (rows,) = follow(bench, planned("different"))
    assert target_row(rows)[:2] == ("different_number", "regression: a number")


@pytest.mark.parametrize("target", WRITTEN)
def test_a_plan_says_that_classes_look_like_numbers(
    bench: Workbench, houses: str, target: str
) -> None:
    _, what, why = target_row(bench.rows(str(planned(target))))
    assert what.startswith("classification") and "its texts look like numbers" in why


@pytest.mark.parametrize("target", ["zip", "code"])
def test_codes_do_not_look_like_numbers(bench: Workbench, houses: str, target: str) -> None:
    assert "numbers" not in target_row(bench.rows(str(planned(target))))[2]


def test_the_call_in_a_notice_predicts_numbers(bench: Workbench, houses: str) -> None:
    call = planned("dollars", model="'houses_dollars'")
    (notice,) = [text for text in train_notices(bench, call) if "look like numbers" in text]
    (way,) = [way for way in read_ways(notice) if way.statements]
    for statement in way.statements:
        bench.rows(statement)
    changed = way.change(call)._replace(function="cerebro.plan")
    rows = bench.rows(str(changed))
    assert target_row(rows)[1] == "regression: a number"
