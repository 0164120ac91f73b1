"""The configurations and epochs that `cerebro.plan` and the call that follows choose."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.templates.budget import Workload
from cerebro_plpy.operations.train.train_request import plan_effort
from cerebro_plpy.operations.train_budget import (
    LATE_SHARE,
    MAX_PREPARATION_SHARE,
    plan_training_seconds,
)

BUDGETS = st.floats(1.0, 1e5)
ON_TIME = st.floats(0.0, 1 - (1 - LATE_SHARE))
"""Shares of the budget that a preparation may take at any rate without another plan."""


def make_request(budget: float) -> Any:
    """Return a request whose call leaves everything open."""
    parsed = SimpleNamespace(budget=budget, cost_limits=None, rule=None)
    arguments = SimpleNamespace(metric=None, ensemble=None, epochs=None, configs=None)
    return SimpleNamespace(parsed=parsed, arguments=arguments)


@given(
    budget=BUDGETS,
    share=ON_TIME,
    rows=st.integers(2, 10**7),
    elements=st.integers(1, 1000),
    core_share=st.sampled_from([1.0, 0.5, 0.25]),
)
def test_a_plan_and_its_call_choose_the_same_effort(
    budget: float, share: float, rows: int, elements: int, core_share: float
) -> None:
    """The plan knows nothing of the time that the call then takes for the table."""
    inputs = SimpleNamespace(table=SimpleNamespace(elements=elements))
    table: Any = SimpleNamespace(rows=rows, validation_rows=rows // 4, recipe=inputs)
    load = Workload(rows, rows // 4, 1000 * elements, 2, 2, core_share)
    request = make_request(budget)
    planned = plan_effort(request, table, load)
    assert plan_effort(request, table, load, share * budget) == planned


@given(BUDGETS, st.integers(0, 10**10), st.floats(0.0, 2.0))
def test_a_late_call_plans_with_the_rest_of_its_budget(
    budget: float, elements: int, share: float
) -> None:
    seconds = plan_training_seconds(budget, elements, share * budget)
    planned = plan_training_seconds(budget, elements)
    remaining = max(0.0, budget - share * budget)
    assert (1 - MAX_PREPARATION_SHARE) * budget <= planned <= budget
    assert seconds == (remaining if remaining < (1 - LATE_SHARE) * planned else planned)
    assert seconds <= remaining / (1 - LATE_SHARE) + 1e-9 * budget
