"""The form that trains a model: its lists are the server's, and its help is the reference's."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import read_reference

from cerebro_db.arguments import TrainOptions
from cerebro_db.dashboard.run_updates import CUT_REASONS
from cerebro_db.dashboard.train_arguments import (
    INTEGER_OPTIONS,
    KINDS,
    SEARCHES,
    TASKS,
    TEMPLATES,
    TEXT_OPTIONS,
    parse_argument_help,
    read_options,
    write_call,
)
from cerebro_plpy.configs.search_space.search_arguments import read_search_rule
from cerebro_plpy.configs.templates.registry import TEMPLATES as BACKEND_TEMPLATES
from cerebro_plpy.operations.admin.help import explain
from cerebro_plpy.operations.train_arguments import METRICS
from cerebro_plpy.run.request.run_request import BUDGET_OVER
from cerebro_plpy.run.state.limits import TIME_OVER

ROOT = Path(__file__).parents[3]
FIELDS = ("source", "target", "types", "models", "budget", "search")
REQUIRED = {"budget": "5", "search": "auto"}


def test_lists_are_those_of_the_server() -> None:
    assert {task: set(names) for task, names in TASKS.items()} == {
        task: set(names) for task, names in METRICS.items()
    }
    assert list(TEMPLATES) == [template.name for template in BACKEND_TEMPLATES]
    assert {BUDGET_OVER, TIME_OVER} < set(CUT_REASONS)
    for name, _ in SEARCHES:
        read_search_rule("train", name, None, 5, templates=True)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The help of each argument of cerebro.train, as psql shows it."""
    return parse_argument_help(explain(read_reference(), "cerebro.train", "usage"))


@pytest.mark.parametrize("name", [*FIELDS, *INTEGER_OPTIONS, *TEXT_OPTIONS])
def test_each_field_has_the_help_of_the_reference(texts: dict[str, str], name: str) -> None:
    assert texts[name].endswith(".") and "NULL" not in texts[name]
    assert "see " not in texts[name].lower() and "](" not in texts[name]


def test_the_reference_names_the_kinds(texts: dict[str, str]) -> None:
    assert all(f"`{kind}`" in texts["types"] for kind in KINDS)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            **{name: st.integers(1, 99).map(str) for name in INTEGER_OPTIONS},
            **{name: st.sampled_from(["a", 'b"c']) for name in TEXT_OPTIONS},
            "template.cnn": st.just("1"),
            "kind.x": st.sampled_from(["", "number"]),
            'kind.a"b': st.sampled_from(["", "left out"]),
        },
    )
)
def test_only_filled_fields_are_arguments(form: dict[str, str]) -> None:
    options = read_options({**REQUIRED, **form})
    assert options.keys() <= get_type_hints(TrainOptions).keys()
    assert options.pop("budget") == timedelta(minutes=5) and options.pop("search") == "auto"
    assert options.pop("models", []) == ["cnn"] * ("template.cnn" in form)
    assert options.pop("types", {}) == ({"x": "number"} if form.get("kind.x") else {})
    assert options.pop("columns", "*") == ('* except "a""b"' if form.get('kind.a"b') else "*")
    assert options == {
        name: int(value) if name in INTEGER_OPTIONS else value
        for name, value in form.items()
        if name in (*INTEGER_OPTIONS, *TEXT_OPTIONS)
    }


@given(st.text(st.sampled_from("a'\"\\"), max_size=6))
def test_texts_of_the_call_are_quoted(text: str) -> None:
    call = write_call(text, "y", {})
    inner = call.removeprefix("cerebro.train('").removesuffix("', 'y')")
    assert inner.replace("''", "") == text.replace("'", "")
    assert inner.count("'") == 2 * text.count("'")
