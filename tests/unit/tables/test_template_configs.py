"""Where learning rates of templates have fallen: where a search compares configurations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.search_space.search_rules import PARAMETERS, RuleContext, SearchRule
from cerebro_plpy.configs.templates.template import Rates
from cerebro_plpy.tables.template_configs import find_cycles

RUNGS = ("asha", "pasha", "halving", "hyperband")


@given(
    st.sampled_from(RUNGS), st.integers(1, 300), st.integers(2, 5), st.none() | st.integers(1, 300)
)
def test_cycles_end_where_configurations_are_compared(
    name: str, epochs: int, eta: int, first: int | None
) -> None:
    known = {"eta": eta} if first is None else {"eta": eta, "first_epochs": first}
    rule = SearchRule(name, {key: known[key] for key in PARAMETERS[name] if key in known})
    cycles = find_cycles(rule, epochs)
    if cycles is None:
        inner: list[int] = []
    else:
        inner = [cycles.first * cycles.factor**number for number in range(cycles.number - 1)]
    compared = rule.make_rule(range(1, 2000), RuleContext(epochs, (epochs,))).decision_epochs
    assert [*inner, epochs] == list(compared)
    schedule = Rates(7, epochs, cycles).make_schedule(0.1)["config"]
    assert isinstance(schedule, dict)
    assert schedule["decay_steps"] == 7 * epochs
    assert schedule.get("first_decay_steps", 7 * rule.first_rung(epochs)) == 7 * rule.first_rung(
        epochs
    )


@pytest.mark.parametrize("name", sorted({*PARAMETERS} - {*RUNGS}))
def test_without_rungs_rates_fall_once(name: str) -> None:
    assert find_cycles(SearchRule(name, PARAMETERS[name]), 27) is None
    assert find_cycles(None, 27) is None
