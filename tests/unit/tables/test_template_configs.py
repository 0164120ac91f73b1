"""Where learning rates of templates have fallen: where a search compares configurations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.search_rules import PARAMETERS, SearchRule, Span
from cerebro_plpy.configs.templates.template import Rates
from cerebro_plpy.tables.template_configs import cycles_of

RUNGS = ("asha", "pasha", "halving", "hyperband")


@given(st.sampled_from(RUNGS), st.integers(1, 300), st.integers(2, 5), st.integers(1, 300))
def test_cycles_end_where_configurations_are_compared(name: str, epochs: int, eta: int, first: int) -> None:
    first = min(first, epochs) if "first_epochs" in PARAMETERS[name] else 1
    rule = SearchRule(name, {key: {"eta": eta, "first_epochs": first}[key] for key in PARAMETERS[name]})
    cycles = cycles_of(rule, epochs)
    if cycles is None:
        inner: list[int] = []
    else:
        inner = [cycles.first * cycles.factor**number for number in range(cycles.number - 1)]
    compared = rule.over(range(1, 2000), Span(epochs, (epochs,))).asked
    assert [*inner, epochs] == list(compared)
    schedule = Rates(7, epochs, cycles).schedule(0.1)["config"]
    assert isinstance(schedule, dict)
    assert schedule["decay_steps"] == 7 * epochs and schedule.get("first_decay_steps", 7 * first) == 7 * first


@pytest.mark.parametrize("name", sorted({*PARAMETERS} - {*RUNGS}))
def test_without_rungs_rates_fall_once(name: str) -> None:
    assert cycles_of(SearchRule(name, PARAMETERS[name]), 27) is None and cycles_of(None, 27) is None
