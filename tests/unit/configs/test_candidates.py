"""Proposals for a table: reproducible by a seed, different, and within the caller's space."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.templates.candidates import (
    MANY_ROWS,
    PriorConfig,
    PriorConfigs,
    SearchGoal,
    check_space,
    choose_config_count,
    make_search_goal,
    propose_configs,
)
from cerebro_plpy.configs.templates.layers.model_io import Classes, Floats, Head, Measure, Table
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.networks.realmlp import REALMLP, SIMPLE
from cerebro_plpy.configs.templates.registry import DEFAULT_TEMPLATES, TEMPLATES, select_suitable
from cerebro_plpy.configs.templates.template_space import TemplateSpace
from cerebro_plpy.configs.templates.trees.boosting import BOOSTING
from cerebro_plpy.errors import InvalidParameter

HEADS: list[Head] = [Classes(3), Floats((Measure(1.0, 2.0, 0.0, 9.0),))]
SPACES = st.fixed_dictionaries(
    {},
    optional={
        "lr": st.sampled_from([0.5, [0.001, 0.5, "log"], [0.1, 0.2]]),
        "width": st.sampled_from([32, [16, 64, "linear"], [16, 32, 64]]),
        "activation": st.sampled_from(["mish", ["selu", "mish"]]),
    },
)


def is_allowed(definition: Any, value: Any) -> bool:
    """Return whether a caller's definition of a field allows a value."""
    if not isinstance(definition, list):
        return bool(value == definition)
    if isinstance(definition[-1], str) and not isinstance(definition[0], str):
        return bool(definition[0] <= value <= definition[1])
    return value in definition


@given(st.sampled_from(HEADS), st.integers(1, 10**6), SPACES, st.integers(0, 10**6))
def test_proposals_are_different_and_of_the_space(
    head: Head, rows: int, space: dict[str, Any], seed: int
) -> None:
    check_space("train", TEMPLATES, space)
    goal = SearchGoal(head, rows, space)
    proposals = list(islice(propose_configs(TEMPLATES, goal, seed), 12))
    assert proposals == list(islice(propose_configs(TEMPLATES, goal, seed), 12))
    configs = [(template.name, params) for template, params, _ in proposals]
    assert all(config not in configs[:number] for number, config in enumerate(configs))
    for template, params, _ in proposals:
        assert all(
            is_allowed(space[name], value) for name, value in params.items() if name in space
        )
        parse_compile_params(template.compile_params(head, params))
    first_round = proposals[: len(TEMPLATES)]
    assert {template.name for template, _, _ in first_round} == {
        template.name for template in TEMPLATES
    }


@pytest.mark.parametrize("rows", [MANY_ROWS - 1, MANY_ROWS])
def test_a_template_begins_with_all_its_starts(rows: int) -> None:
    """With few rows the defaults come before the starts, with many rows after them."""
    templates = select_suitable(DEFAULT_TEMPLATES, Table(1))
    goal = SearchGoal(HEADS[0], rows, {"width": 64})
    names = [template.name for template in templates]
    starts = [template.name for template in templates for _ in template.starts]
    proposals = list(islice(propose_configs(templates, goal, 1), len(names) + len(starts)))
    assert names == ["boosting", "realmlp", "realmlp_simple", "linear"]
    assert [template.name for template, _, _ in proposals] == [*names, *starts]
    defaults = REALMLP.params(HEADS[0], rows, {})
    realmlp_params = [params for template, params, _ in proposals if template is REALMLP]
    fields = (*REALMLP.starts, {}) if rows >= MANY_ROWS else ({}, *REALMLP.starts)
    assert realmlp_params == [{**defaults, **start, "width": 64} for start in fields]


@pytest.mark.parametrize("head", HEADS)
def test_the_first_of_each_template_has_its_defaults(head: Head) -> None:
    first = list(islice(propose_configs(TEMPLATES, SearchGoal(head, 500, {}), 1), len(TEMPLATES)))
    assert [params for _, params, _ in first] == [
        template.params(head, 500, {}) for template in TEMPLATES
    ]
    goal = SearchGoal(head, 500, {"lr": 0.5, "depth": [4, 5]})
    (fixed,) = islice(propose_configs([REALMLP], goal, 1), 1)
    assert fixed.params["lr"] == 0.5 and fixed.params["depth"] in (4, 5)
    assert {**fixed.params, "lr": 0, "depth": 0} == {
        **REALMLP.params(head, 500, {}),
        "lr": 0,
        "depth": 0,
    }


@pytest.mark.parametrize("head", [HEADS[1], Classes(2, calibrated=True)])
def test_labels_are_smoothed_only_on_request_or_if_it_does_no_harm(head: Head) -> None:
    for space, shares in (({}, {0.0}), ({"label_smoothing": [0.2, 0.3]}, {0.2, 0.3})):
        values = {
            p["label_smoothing"]
            for _, p, _ in islice(propose_configs([REALMLP], SearchGoal(head, 500, space), 1), 30)
        }
        assert values == shares
    default_proposals = islice(propose_configs([REALMLP], SearchGoal(HEADS[0], 500, {}), 1), 30)
    assert {p["label_smoothing"] for _, p, _ in default_proposals} == {0.0, 0.1}


@pytest.mark.parametrize("rows", [MANY_ROWS - 1, MANY_ROWS])
@pytest.mark.parametrize(
    ("high", "links"), [(2.9, {"identity"}), (3.0, {"identity", "log"})], ids=["even", "skewed"]
)
def test_logarithms_are_tried_for_skewed_targets_only(
    rows: int, high: float, links: set[str]
) -> None:
    """The usual configuration comes first, whatever the number of rows."""
    head = Floats((Measure(0.0, 1.0, -1.0, high),))
    for template in (LINEAR, REALMLP, BOOSTING):
        goal = SearchGoal(head, rows, {})
        params = [p for _, p, _ in islice(propose_configs([template], goal, 1), 30)]
        assert {each["link"] for each in params} == links
        assert params[0]["link"] == "identity"
    for template in (LINEAR, BOOSTING):
        second = list(islice(propose_configs([template], SearchGoal(head, rows, {}), 1), 2))[1]
        assert (second.params["link"] == "log") == ("log" in links)
    asked = islice(propose_configs([LINEAR], SearchGoal(head, rows, {"link": "log"}), 1), 3)
    assert {each.params["link"] for each in asked} == {"log"}, "a call may name it for any target"


@pytest.mark.parametrize(
    ("metric", "is_worsened"),
    [("log_loss", True), ("auc", True), ("accuracy", False), (None, False)],
)
def test_labels_are_not_smoothed_for_a_metric_that_this_worsens(
    metric: str | None, is_worsened: bool
) -> None:
    proposals = islice(
        propose_configs([REALMLP], make_search_goal(HEADS[0], metric, 500, {}), 1), 30
    )
    assert {p["label_smoothing"] for _, p, _ in proposals} == ({0.0} if is_worsened else {0.0, 0.1})
    assert make_search_goal(HEADS[1], metric, 500, {}) == SearchGoal(HEADS[1], 500, {}), (
        "there are no labels"
    )


def test_proposals_end_with_the_space() -> None:
    space = {"lr": [0.1, 0.2], "batch_size": [32, 64], "weight_decay": 0}
    proposals = list(propose_configs([LINEAR], SearchGoal(HEADS[0], 100, space), 3))
    assert len(proposals) == 4 and {params["weight_decay"] for _, params, _ in proposals} == {0}


def test_prior_configurations_are_tried_early_and_once() -> None:
    """Those that the caller names come first, those of similar tables after the defaults."""
    named = PriorConfig(
        "linear", {"lr": 0.5, "batch_size": 32, "weight_decay": 0.25, "gone": 1}, "run 3", 3
    )
    default = PriorConfig("linear", LINEAR.params(HEADS[0], 100, {}), "model a", 4)
    similar = PriorConfig("realmlp", {"depth": 3, "lr": 0.125}, "model b", 5)
    wrong = PriorConfig("realmlp", {"depth": "deep"}, "model c", 5)
    other = PriorConfig("transformer", {"depth": 3}, "model of a template that is not tried", 4)
    prior_configs = PriorConfigs((named, named), (default, other, similar, wrong, named))
    assert prior_configs.runs == [3, 4, 5]
    goal = SearchGoal(HEADS[0], 100, {"batch_size": 64})
    proposals = list(islice(propose_configs([LINEAR, REALMLP], goal, 3, prior_configs), 8))
    starts = ["good to begin with"] * len(REALMLP.starts)
    reasons = ["run 3", "usual values", "usual values", *starts, "model b", "drawn at random"]
    assert [reason for _, _, reason in proposals] == reasons
    assert proposals[0].params == {
        "lr": 0.5,
        "batch_size": 64,
        "class_weight": "none",
        "weight_decay": 0.25,
        "link": "identity",
    }
    assert proposals[6].params == {
        **REALMLP.params(HEADS[0], 100, {}),
        "lr": 0.125,
        "batch_size": 64,
    }
    assert [proposal.template.name for proposal in proposals[1:3]] == ["linear", "realmlp"]


@pytest.mark.parametrize(
    "space",
    [
        {"rate": 1},
        {"lr": "fast"},
        {"lr": [0.1, 1e9, "log"]},
        {"lr": []},
        {"width": [1.5, 2, "linear"]},
        {"depth": [1, 99]},
    ],
)
def test_an_invalid_space_is_refused(space: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter) as error:
        check_space("train", TEMPLATES, space)
    assert error.value.hint


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_more_rows_are_worth_more_configurations(one: int, other: int) -> None:
    assert choose_config_count(min(one, other)) <= choose_config_count(max(one, other)) <= 100


@given(seed=st.integers(0, 9), number=st.integers(0, 30))
def test_a_point_is_the_configuration_that_it_came_from(seed: int, number: int) -> None:
    """This holds for points in the space; fields that are not searched have their defaults."""
    templates = (REALMLP, SIMPLE, LINEAR)
    goal = SearchGoal(Classes(3), 500, {"width": [16, 32], "batch_size": 32})
    space = TemplateSpace(templates, goal, Table(2))
    proposal = next(islice(propose_configs(templates, space.goal, seed), number, None))
    point = space.find_point({"template": proposal.template.name, "params": proposal.params})
    names = {
        str(dimension["name"]) for dimension in space.describe()[templates.index(proposal.template)]
    }
    if point is None:
        assert proposal.reason != "drawn at random"
    else:
        assert point["values"].keys() == names
        row = space.make_row(point)
        again = proposal.template.params(space.goal.head, 500, row["params"])
        searched = {name.split("/")[1] for name in names}
        assert row["template"] == proposal.template.name
        for field in searched:
            value = proposal.params[field]
            assert again[field] == (
                pytest.approx(value, rel=1e-3) if isinstance(value, float) else value
            )
