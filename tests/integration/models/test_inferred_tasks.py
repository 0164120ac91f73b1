"""The task of whole numbers: what a call is told, and what later versions do."""

from __future__ import annotations

import pytest
from workbench import Workbench

FLIGHTS = """
    CREATE TABLE flights AS
    SELECT n AS id, n % 24 AS hour, n % 7 * 1.5 AS distance, n * 37 % 24 AS gate,
           (60 * (n % 24) / 24.0 + n * 7919 % 97 / 4.0 - 12)::integer AS delay
    FROM generate_series(1, 3000) n;
    ALTER TABLE flights ADD PRIMARY KEY (id)"""
QUICK = "models => '{linear}', configs => 1, epochs => 1, ensemble => 1, seed => 1, refit => 'none'"


@pytest.fixture(scope="module")
def flights(bench: Workbench) -> Workbench:
    bench.rows(FLIGHTS)
    return bench


def planned(bench: Workbench, target: str, more: str = "") -> tuple[str, str]:
    """Return the task and its reason; rows about classes may follow."""
    row = bench.rows(
        f"SELECT what, why FROM cerebro.plan('flights', %s, {QUICK}{more}) "
        "WHERE section = 'target' AND name = %s",
        target,
        target,
    )[0]
    return row[0], row[1]


def test_minutes_of_delay_are_a_number(flights: Workbench) -> None:
    what, why = planned(flights, "delay")
    assert what == "regression: a number" and "different values" in why
    what, why = planned(flights, "gate")
    assert what == "classification: 24 classes" and "without a gap" in why
    assert planned(flights, "gate", ", task => 'regression'") == (
        "regression: a number",
        "as task says",
    )


def test_the_other_task_is_named_and_stays_that_of_the_model(flights: Workbench) -> None:
    """The call that the notice shows is made, and a later call without it does the same."""
    flights.messages()
    flights.rows(f"SELECT * FROM cerebro.train('flights', 'delay', 'plain', {QUICK})")
    (said,) = (line for line in flights.messages() if "delay is predicted as a number" in line)
    assert "task => 'classification' predicts one of" in said
    classes = flights.value("SELECT count(DISTINCT delay) FROM flights")
    flights.rows(
        "SELECT * FROM cerebro.train('flights', 'delay', task => 'classification', "
        f"{QUICK}, columns => 'hour')"
    )
    assert any(f"({classes} classes)" in line for line in flights.messages())
    assert planned(flights, "delay", ", columns => 'hour'") == (
        f"classification: {classes} classes",
        "as versions before",
    )
    assert planned(flights, "delay", ", model => 'plain'")[1] == "as versions before"
