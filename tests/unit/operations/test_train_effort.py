"""The configurations and epochs that `cerebro.plan` and the call that follows choose."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.templates import registry
from cerebro_plpy.configs.templates.budget import (
    MIN_EPOCHS,
    Workload,
    choose_sample_share,
    estimate_weights,
)
from cerebro_plpy.configs.templates.layers.model_io import Classes, Table
from cerebro_plpy.operations.template_choice import TemplateChoice
from cerebro_plpy.operations.train.train_request import TrainRequest, choose_templates
from cerebro_plpy.operations.train_budget import (
    LATE_SHARE,
    MAX_PREPARATION_SHARE,
    plan_training_seconds,
)
from cerebro_plpy.operations.train_effort import (
    MAX_TEMPLATE_SHARE,
    estimate_quickest_rate,
    find_mean_rate,
    plan_effort,
    put_quick_first,
    select_rates,
)
from cerebro_plpy.operations.tree_support import NO_TREES, TreeSupport
from cerebro_plpy.preprocessing.rows.split import Split
from cerebro_plpy.records import replace

BUDGETS = st.floats(1.0, 1e5)
ON_TIME = st.floats(0.0, 1 - (1 - LATE_SHARE))
"""Shares of the budget that a preparation may take at any rate without another plan."""


WITH_TREES = TreeSupport(cache_bytes=10**15)


def make_request(budget: float, tree_support: TreeSupport = NO_TREES) -> Any:
    """Return a request whose call leaves everything open."""
    parsed = SimpleNamespace(budget=budget, cost_limits=None, rule=None)
    open_names = ("metric", "ensemble", "epochs", "configs", "group_by", "search", "models")
    arguments = SimpleNamespace(**dict.fromkeys(open_names))
    choice = TemplateChoice("train", None, tree_support=tree_support)
    return SimpleNamespace(
        rates={},
        parsed=parsed,
        arguments=arguments,
        template_choice=choice,
        may_refit=True,
        can_fold=True,
        core_share=1.0,
    )


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
    table = make_table(rows, elements)
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


RATES = st.dictionaries(
    st.sampled_from(["realmlp", "realmlp_simple"]),
    st.floats(1e-7, 1.0) | st.just(math.inf),
    min_size=1,
)


def make_table(rows: int, elements: int = 3) -> Any:
    """Return a table of numbers."""
    return SimpleNamespace(
        rows=rows,
        validation_rows=rows // 4,
        split=Split("random", 0.2, None),
        recipe=SimpleNamespace(table=Table(numbers=elements), room=elements),
        target=SimpleNamespace(head=Classes(2)),
    )


@given(RATES, st.integers(2, 10**6), st.floats(1.0, 1e4), st.booleans())
def test_templates_that_cannot_train_a_few_epochs_in_half_of_the_time_are_left_out(
    rates: dict[str, float], rows: int, time: float, trees: bool
) -> None:
    load = Workload(rows, rows // 4, 1000, 2, 2)
    request = make_request(60.0, WITH_TREES if trees else NO_TREES)
    selected = select_rates(request, make_table(rows), load, rates, time)
    assert selected["linear"] == 0.0, "a baseline is not measured"
    assert ("boosting" in selected) == trees
    finite = {name for name, rate in rates.items() if rate < math.inf}
    assert trees or not finite or finite & selected.keys(), "the fastest one stays"
    for name, rate in rates.items():
        measured = Workload(rows, rows // 4, 0, 2, 2, row_seconds=rate)
        is_slow = MIN_EPOCHS * measured.epoch_seconds > MAX_TEMPLATE_SHARE * time
        if name in selected:
            assert not is_slow or (not trees and rate == min(rates.values()))
        else:
            assert is_slow


@given(st.integers(1000, 10**8), st.integers(1, 1000), st.floats(1.0, 1e4))
def test_trees_learn_from_no_fewer_rows_than_networks(
    rows: int, elements: int, budget: float
) -> None:
    """Trees take less time for a row, so that a smaller part of the rows is left out."""
    table = make_table(rows, elements)
    load = Workload(rows, rows // 4, estimate_weights(table.recipe.table, table.target.head), 2, 2)
    shares = [
        choose_sample_share(replace(load, row_seconds=rate), budget)
        for rate in (
            estimate_quickest_rate(make_request(budget, support), table, load)
            for support in (NO_TREES, WITH_TREES)
        )
    ]
    assert shares[0] == choose_sample_share(load, budget), "the weights decide without trees"
    assert shares[1] >= shares[0]


@given(RATES, st.integers(2, 10**6), st.floats(1.0, 1e4))
def test_a_template_that_the_call_names_is_tried_if_it_can_be_trained(
    rates: dict[str, float], rows: int, time: float
) -> None:
    request = make_request(60.0)
    names = ["linear", *rates]
    request.arguments.models = names
    request.template_choice = TemplateChoice("train", [*map(registry.find_template, names)])
    load = Workload(rows, rows // 4, 1000, 2, 2)
    selected = select_rates(request, make_table(rows), load, rates, time)
    finite = {name for name, rate in rates.items() if rate < math.inf}
    assert selected.keys() == finite | {"linear"}


@given(st.floats(20.0, 1e4), st.floats(1e-7, 1e-3), st.floats(1.0, 100.0))
def test_slower_templates_get_no_more_epochs(budget: float, rate: float, factor: float) -> None:
    rows = 20_000
    efforts = []
    for measured in (rate, rate * factor):
        request = make_request(budget)
        request.rates = {"linear": 0.0, "realmlp": measured}
        assert find_mean_rate(request) == measured
        load = Workload(rows, rows // 4, 1000, 2, 2, row_seconds=measured)
        efforts.append(plan_effort(request, make_table(rows), load, 5.0))
    assert efforts[0].epochs >= efforts[1].epochs
    assert min(effort.configs for effort in efforts) >= 2, "each template has a configuration"


def test_a_call_that_could_measure_nothing_begins_with_what_compiles_in_the_least_time() -> None:
    table = make_table(20_000)
    names = [template.name for template in make_request(60.0).template_choice.choose(table)]
    fields = dict.fromkeys(("module", "source", "model", "table_options", "core_share"))
    request = make_request(60.0)
    values = {"parsed": request.parsed, "arguments": request.arguments, "seed": 1}
    choice = request.template_choice
    whole: Any = TrainRequest(
        **{**fields, **values}, named_configs=(), template_choice=choice, can_fold=True, rates={}
    )
    quick = put_quick_first(whole, names)
    ordered = [template.name for template in choose_templates(quick, table)]
    assert ordered[0] == "linear" and sorted(ordered) == sorted(names)
    assert ordered.index("realmlp_simple") < ordered.index("realmlp")
    assert find_mean_rate(quick) is None, "the number of weights decides"
