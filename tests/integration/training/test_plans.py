"""What a run would do is told beforehand, and compared with what it did: nothing is trained for
that.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg2
import pytest
from roles import another_role
from workbench import Workbench, several

EPOCHS, SEGMENTS = 2, 2
TABLES = ("run_log", "config_log", "visit", "evaluation", "metric", "decision_log")


@pytest.fixture(scope="module")
def planned(bench: Workbench) -> Workbench:
    """Rows in two segments, and four configurations of which two share a program each."""
    bench.pack("halves", SEGMENTS)
    bench.configure("four", several(2), ["batch_size=8", "batch_size=4"])
    return bench


def plan(bench: Workbench, call: str, *values: object) -> dict[str, Any]:
    """The root of a plan."""
    (found,) = json.loads(bench.value(f"SELECT cerebro.{call}", *values))
    assert found.keys() == {"Plan"}
    return dict(found["Plan"])


def parts(root: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Its nodes of that name."""
    return [part for part in root["Plans"] if part["Node Type"] == name]


def counts(bench: Workbench) -> list[int]:
    """How much the log has."""
    return [bench.value(f"SELECT count(*) FROM cerebro.{table}") for table in TABLES]


def test_a_plan_trains_nothing_and_the_run_goes_by_it(planned: Workbench) -> None:
    before = counts(planned)
    root = plan(
        planned,
        "plan_fit('halves', 'four', %s, validation_table => 'halves', format => 'json')",
        EPOCHS,
    )
    assert counts(planned) == before
    assert not planned.exists("model")
    assert (root["Configs"], root["Epochs"]) == (4, EPOCHS)
    programs = parts(root, "Program")
    assert [(each["Configs"], each["Batch"], each["Backend"]) for each in programs] == [
        (2, 8, "tensorflow"),
        (2, 4, "tensorflow"),
    ]
    assert all(each["Visit Time"] > 0 and each["State"] > 0 for each in programs)
    assert root["Expected"] >= root["Lower Bound"] > 0
    run = planned.fit("halves", "model", "four", EPOCHS, validation_table="halves")
    workers = parts(root, "Workers")[0]
    asked = (
        "SELECT count(DISTINCT worker_pid) <= %s, array_agg(DISTINCT threads) FROM cerebro.visit "
        "WHERE run_id = %s"
    )
    assert planned.row(asked, workers["Workers"], run) == (True, [workers["Threads"]])
    logged = planned.value(
        "SELECT plan -> 'chosen' ->> 'name' FROM cerebro.run_log WHERE run_id = %s", run
    )
    assert logged == root["Strategy"]
    # By the times of that run another strategy may be the better one, of which no error is known.
    again = plan(
        planned,
        "plan_fit('halves', 'four', %s, validation_table => 'halves', strategy => %s, "
        "format => 'json')",
        EPOCHS,
        logged,
    )
    assert {each["Known"] for each in parts(again, "Program")} == {"measured in an earlier run"}
    assert again["Error"] >= 0


@pytest.fixture(scope="module")
def seen(planned: Workbench) -> int:
    """A run whose plan is compared with what it did."""
    return planned.fit("halves", "seen", "four", EPOCHS, seed=2)


def test_a_plan_has_what_happened_as_the_log_has_it(planned: Workbench, seen: int) -> None:
    run = seen
    root = plan(planned, "plan_of(%s, 'json')", run)
    took = planned.value(
        "SELECT extract(epoch FROM ended_at - started_at)::double precision FROM cerebro.run_log "
        "WHERE run_id = %s",
        run,
    )
    assert (root["Status"], root["Actual"]) == ("completed", pytest.approx(took))
    assert root["Estimate Off By"] == pytest.approx(100 * (root["Expected"] / took - 1))
    assert {each["name"] for each in root["By Measured Times"]} >= {root["Strategy"]}
    (states,) = parts(root, "States")
    stored = "SELECT count(state_bytes), sum(state_bytes) FROM cerebro.visit WHERE run_id = %s"
    assert (states["Actual Stores"], states["Actual Bytes Stored"]) == planned.row(stored, run)
    made = [each["Actual Visits"] for each in parts(root, "Program")]
    assert made == [2 * EPOCHS * SEGMENTS] * 2
    assert 0 <= parts(root, "Workers")[0]["Actual Idle"] <= 100
    text = [line for (line,) in planned.rows("SELECT cerebro.plan_of(%s)", run)]
    assert text[0].startswith("Fit  (strategy=")
    assert sum(line.startswith("  ->  ") for line in text) == len(root["Plans"])


def test_a_run_without_a_plan_tells_what_happened(planned: Workbench) -> None:
    run = planned.fit("halves", "older", "four", 1, seed=3)
    for text in (None, "{}", '{"work": 1}'):
        planned.rows("UPDATE cerebro.run_log SET plan = %s WHERE run_id = %s", text, run)
        root = plan(planned, "plan_of(%s, 'json')", run)
        assert root["Expected"] == "unknown"
        assert sum(each["Actual Visits"] for each in parts(root, "Program")) == 4 * SEGMENTS
    assert planned.rows("SELECT cerebro.plan_fit('halves', 'four', 1)"), (
        "what somebody has written there is passed by"
    )


def test_a_replay_and_a_search_are_planned(planned: Workbench) -> None:
    run = planned.fit("halves", "first", "four", EPOCHS, seed=4, schedule="rotation")
    call = (
        "plan_fit('halves', 'four', %s, schedule => 'replay', replay_run => %s, format => 'json')"
    )
    assert plan(planned, call, EPOCHS, run)["Strategy"] == "mop"
    again = planned.fit("halves", "again", "four", EPOCHS, schedule="replay", replay_run=run)
    found = plan(planned, "plan_of(%s, format => 'json')", again)
    assert found["Status"] == "completed" and found["Actual"] > 0
    searched = plan(planned, "plan_fit('halves', 'four', 9, search => 'asha', format => 'json')")
    assert "At most" in searched


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("plan_fit('halves', 'four', 1, format => 'xml')", "22023"),
        ("plan_fit('halves', 'four', 0)", "22023"),
        ("plan_fit('halves', 'missing', 1)", "42P01"),
        ("plan_fit('halves', 'four', 1, schedule => 'x')", "22023"),
        ("plan_of(NULL)", "22004"),
        ("plan_of(2147483647)", "42704"),
        ("plan_of((SELECT max(run_id) FROM cerebro.run), 'yaml')", "22023"),
    ],
)
def test_what_cannot_be_planned_is_refused(planned: Workbench, call: str, code: str) -> None:
    with pytest.raises(psycopg2.Error) as caught:
        planned.rows(f"SELECT cerebro.{call}")
    assert caught.value.pgcode == code, caught.value


def test_runs_of_other_roles_have_no_plan(
    planned: Workbench, shared_superuser: Workbench, seen: int
) -> None:
    with (
        another_role(planned, shared_superuser, "zoe") as zoe,
        pytest.raises(psycopg2.Error) as caught,
    ):
        zoe.rows("SELECT cerebro.plan_of(%s)", seen)
    assert caught.value.pgcode == "42704"
