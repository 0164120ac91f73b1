"""Mutations of a clone's fields in population based training, which keep its parent's state."""

from __future__ import annotations

import json
from itertools import cycle, islice
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.configs.architecture.model_shapes import have_same_predictions, have_same_sizes
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.templates.candidates import (
    SearchGoal,
    find_distributions,
    propose_configs,
)
from cerebro_plpy.configs.templates.clone_mutation import CloneMutation
from cerebro_plpy.configs.templates.layers.model_io import (
    TEXT,
    Classes,
    Floats,
    Head,
    Measure,
    Table,
    Wide,
)
from cerebro_plpy.configs.templates.registry import NETWORK_TEMPLATES as TEMPLATES
from cerebro_plpy.configs.templates.template import Params, Rates, Template
from cerebro_plpy.configs.templates.trees.boosting import BOOSTING

ROWS = 500
RATES = Rates(30, 30)
TABLE = Table(
    3, 2, (4, 12), (Wide(TEXT, (6,), 31), Wide("series", (11, 2)), Wide("image", (9, 5, 1)))
)
HEADS: tuple[Head, ...] = (Classes(3), Floats((Measure(10.0, 2.0, 5.0, 20.0),)))
FIXED_FIELDS = {
    "batch_size",
    "width",
    "depth",
    "members",
    "numbers",
    "block",
    "frequency",
    "label_smoothing",
    "activation",
    "link",
}
"""Fields that change the steps of an epoch, or weights, their initialization or their use."""


def propose_params(
    template: Template, head: Head, seed: int, space: dict[str, object]
) -> tuple[SearchGoal, list[Params]]:
    """Return two configurations of a search."""
    goal = SearchGoal(head, ROWS, space)
    proposals = islice(propose_configs([template], goal, seed), 2)
    return goal, [proposal.params for proposal in proposals]


def find_schedule(template: Template, head: Head, params: Params) -> dict[str, Any]:
    """Return the schedule of the learning rate without its peak."""
    compile_text = template.compile_params(head, params, (), RATES)
    rate = parse_compile_params(compile_text, None).optimizer.config["learning_rate"]
    assert isinstance(rate, dict)
    return {name: value for name, value in rate["config"].items() if name != "warmup_target"}


@given(st.sampled_from(TEMPLATES), st.sampled_from(HEADS), st.integers(0, 99), st.booleans())
@trials(10)
def test_a_clone_has_the_network_and_the_steps_of_its_parent(
    template: Template, head: Head, seed: int, batches: bool
) -> None:
    space: dict[str, object] = {"batch_size": [8, 16, 32]} if batches else {}
    goal, configs = propose_params(template, head, seed, space)
    mutation = CloneMutation(template, TABLE, head)
    distributions = find_distributions(template, goal)
    for params in configs:
        mutated = mutation.mutate(params, distributions, Random(seed))
        texts = [
            json.loads(template.architecture(TABLE, head, values)) for values in (params, mutated)
        ]
        assert have_same_predictions(*texts) and have_same_sizes(*texts)
        assert find_schedule(template, head, params) == find_schedule(template, head, mutated)
        assert not {name for name in mutated if mutated[name] != params[name]} & FIXED_FIELDS
        assert template.params(head, ROWS, mutated) == mutated
        assert mutation.mutate(params, distributions, Random(seed)) == mutated


@pytest.mark.parametrize(
    ("template", "head"),
    [*zip(TEMPLATES, cycle(HEADS), strict=False)],
    ids=[template.name for template in TEMPLATES],
)
def test_the_learning_rate_can_change_and_fields_of_the_weights_cannot(
    template: Template, head: Head
) -> None:
    goal, (params, *_) = propose_params(template, head, 1, {})
    mutation = CloneMutation(template, TABLE, head)
    mutable = mutation.find_mutable_fields(params, find_distributions(template, goal))
    assert "lr" in mutable
    assert not FIXED_FIELDS.intersection(mutable)
    fixed = SearchGoal(
        head, ROWS, {"lr": 0.01, "weight_decay": 0.0, "dropout": 0.0, "width": [8, 16]}
    )
    mutable = mutation.find_mutable_fields(
        {**params, "lr": 0.01}, find_distributions(template, fixed)
    )
    assert not {"lr", "weight_decay", "width"}.intersection(mutable)


def test_dropout_layers_without_dropout_have_no_state() -> None:
    one, other, none = (
        {"class_name": "Dropout", "config": {"rate": rate}} for rate in (0.1, 0.2, 0.0)
    )
    assert have_same_predictions(one, other) and not have_same_predictions(one, none)
    assert not have_same_predictions({"units": 1}, {"units": 2}) and not have_same_predictions(
        {"scale": 1.0}, {"scale": 2.0}
    )


@given(st.sampled_from(HEADS), st.integers(0, 99), st.booleans())
@trials(10)
def test_trees_begin_anew_with_other_fields_of_theirs(
    head: Head, seed: int, weighted: bool
) -> None:
    """Class weights alone change nothing of the trees that there are."""
    space: dict[str, object] = {"class_weight": ["none", "auto"]} if weighted else {}
    goal, configs = propose_params(BOOSTING, head, seed, space)
    mutation = CloneMutation(BOOSTING, TABLE, head)
    distributions = find_distributions(BOOSTING, goal)
    for params in configs:
        mutable = mutation.find_mutable_fields(params, distributions)
        assert mutable == (["class_weight"] if weighted else [])
        mutated = mutation.mutate(params, distributions, Random(seed))
        assert {name for name in params if mutated[name] != params[name]} <= {*mutable}
