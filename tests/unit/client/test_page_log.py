"""Commands and decisions on the page of a run: each day once, and only what a command changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.dashboard.metric_names import choose_names
from cerebro_db.dashboard.run_log_lines import describe_change, describe_log
from cerebro_db.records import Parameter

PARAMS = st.dictionaries(st.sampled_from(["lr", "depth", "width"]), st.integers(0, 2))
START = datetime(2030, 1, 1, tzinfo=UTC)


@given(PARAMS, PARAMS)
def test_a_clone_names_what_differs(before: dict[str, int], after: dict[str, int]) -> None:
    text = describe_change({"params": after, "template": "linear"}, before)
    expected = {f"{name}={value}" for name, value in after.items() if before.get(name) != value}
    assert {part for part in text.split(", ") if part} == expected


@given(
    st.lists(st.integers(0, 5 * 24 * 60), max_size=8), st.lists(st.integers(0, 9999), max_size=8)
)
def test_each_day_stands_once_and_the_newest_line_first(
    act_minutes: list[int], decision_minutes: list[int]
) -> None:
    acts = [make_act(minute) for minute in act_minutes]
    decisions = [make_decision(minute) for minute in decision_minutes]
    reader: Any = SimpleNamespace(
        read_run=lambda run: None,
        read_newest=lambda number, run, count: acts if number.name == "act_id" else decisions,
        read_run_metrics=lambda run: choose_names(None, "loss"),
        parameters=lambda run: [Parameter(run_id=1, mst_key=1, name="lr", value=1)],
    )
    days = describe_log(reader, 1)["days"]
    assert len({day for day, _ in days}) == len(days)
    times = [line.time for _, lines in days for line in lines]
    assert times == sorted(times, reverse=True) and len(times) == len(acts) + len(decisions)
    assert all(line.change in ("", "lr=2") for _, lines in days for line in lines)


def make_act(minute: int) -> dict[str, Any]:
    """A clone of the first configuration, with another lr."""
    return {
        "time": START + timedelta(minutes=minute), "actor": "ann", "action": "clone_config",
        "mst_key": 1, "change": {"params": {"lr": 2}}, "status": "done", "reason": None,
    }  # fmt: skip


def make_decision(minute: int) -> dict[str, Any]:
    return {
        "time": START + timedelta(minutes=minute), "rule": "asha", "action": "rest",
        "mst_key": 1, "reason": "others are better",
    }  # fmt: skip
