"""A run whose budget was over leads to a form with the same arguments and more time."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.dashboard import longer_training
from cerebro_db.dashboard.longer_training import (
    OTHER_ARGUMENTS,
    is_budget_over,
    make_longer_address,
    suggest_minutes,
)
from cerebro_db.dashboard.train_arguments import BUDGETS, KINDS, LEFT_OUT, TEMPLATES, read_options
from cerebro_plpy.run.request.run_request import BUDGET_OVER

COLUMNS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
LONGEST = 60.0 * max(minutes for minutes, _ in BUDGETS)


@st.composite
def draw_forms(draw: st.DrawFn) -> dict[str, str]:
    """Draw the fields of a form that somebody has filled in."""
    form = {"source": draw(COLUMNS), "target": draw(COLUMNS), "budget": "1", "search": "auto"}
    texts = COLUMNS.map(str.strip).filter(bool)
    for name in ("model", "task", "metric", "split", "weight", "group_by"):
        if draw(st.booleans()):
            form[name] = draw(texts)
    kinds = st.sampled_from([*KINDS, LEFT_OUT])
    for column in draw(st.lists(COLUMNS, max_size=3, unique=True)):
        form[f"kind.{column}"] = draw(kinds)
    for template in draw(st.sets(st.sampled_from(TEMPLATES))):
        form[f"template.{template}"] = "1"
    return form


def log_call(form: dict[str, str], seconds: float) -> dict[str, Any]:
    """Return what the log has of the call of a form."""
    options = read_options(form)
    names = ("task", "metric", "model", "split", "weight", "group_by", "types")
    return {
        "relation": form["source"], "target": form["target"], "budget": seconds,
        "columns": options.get("columns", "*"), "tried": options.get("models"),
        **{name: options.get(name) for name in names}, **dict.fromkeys(OTHER_ARGUMENTS),
    }  # fmt: skip


@given(draw_forms(), st.floats(1, LONGEST, exclude_max=True))
def test_the_form_has_the_same_arguments_and_more_time(
    form: dict[str, str], seconds: float
) -> None:
    address = make_longer_address(log_call(form, seconds))
    assert address is not None and urlsplit(address).path == "/train"
    filled = dict(parse_qsl(urlsplit(address).query, strict_parsing=True))
    assert (filled["source"], filled["target"]) == (form["source"], form["target"])
    options = read_options({**filled, "search": "auto"})
    assert options.pop("budget").total_seconds() > seconds
    expected = read_options(form)
    del expected["budget"]
    # The order of templates and columns decides nothing.
    for each in (options, expected):
        each["models"] = sorted(each.get("models", ()))
    assert options == expected


@pytest.mark.parametrize(
    "change",
    [
        {"columns": "a, b"},
        {"budget": LONGEST},
        {"space": {"lr": 0.1}},
        {"query": {"text": "SELECT 1"}},
        {"start": {"model": "m"}},
        {"max_cost": 3.0},
        {"max_cpu": 60.0},
    ],
)
def test_what_no_form_can_call_is_not_offered(change: dict[str, Any]) -> None:
    form = {"source": "t", "target": "y", "budget": "1", "search": "auto"}
    assert make_longer_address(log_call(form, 5.0)) is not None
    assert make_longer_address({**log_call(form, 5.0), **change}) is None


@pytest.mark.parametrize("minutes", [minutes for minutes, _ in BUDGETS])
def test_the_same_time_is_not_offered_again(minutes: int) -> None:
    longer = suggest_minutes(60.0 * minutes)
    assert longer is None or longer > minutes


def test_the_error_of_such_a_run_is_the_servers() -> None:
    assert longer_training.BUDGET_OVER == BUDGET_OVER
    assert is_budget_over(f"{BUDGET_OVER} before any configuration was trained")
    assert not is_budget_over("all 3 configurations failed") and not is_budget_over(None)
