"""What population based training makes of the fields of a clone, so that it can go on from the
state of another one.
"""

from __future__ import annotations

import json
from itertools import cycle
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
from cerebro_plpy.configs.templates.registry import TEMPLATES
from cerebro_plpy.configs.templates.template import Params, Rates, Template

ROWS, RATES = 500, Rates(30, 30)
TABLE = Table(
    3, 2, (4, 12), (Wide(TEXT, (6,), 31), Wide("series", (11, 2)), Wide("image", (9, 5, 1)))
)
HEADS: tuple[Head, ...] = (Classes(3), Floats((Measure(10.0, 2.0, 5.0, 20.0),)))
STAY = {
    "batch_size",
    "width",
    "depth",
    "members",
    "numbers",
    "block",
    "frequency",
    "label_smoothing",
    "activation",
}
"""Fields that change the steps of an epoch, weights, how these begin, or what is made of them."""


def drawn(
    template: Template, head: Head, seed: int, space: dict[str, object]
) -> tuple[SearchGoal, list[Params]]:
    """Configurations that a search may try."""
    searched, found = SearchGoal(head, ROWS, space), list[Params]()
    for proposal in propose_configs([template], searched, seed):
        found.append(proposal.params)
        if len(found) == 2:
            break
    return searched, found


def rates(template: Template, head: Head, params: Params) -> dict[str, Any]:
    """How its learning rate rises and falls, but for how high."""
    rate = parse_compile_params(
        template.compile_params(head, params, (), RATES), None
    ).optimizer.config["learning_rate"]
    assert isinstance(rate, dict)
    return {name: value for name, value in rate["config"].items() if name != "warmup_target"}


@given(st.sampled_from(TEMPLATES), st.sampled_from(HEADS), st.integers(0, 99), st.booleans())
@trials(10)
def test_a_clone_has_the_network_and_the_steps_of_its_parent(
    template: Template, head: Head, seed: int, batches: bool
) -> None:
    space: dict[str, object] = {"batch_size": [8, 16, 32]} if batches else {}
    searched, found = drawn(template, head, seed, space)
    kin, draws = CloneMutation(template, TABLE, head), find_distributions(template, searched)
    for params in found:
        moved = kin.mutate(params, draws, Random(seed))
        texts = [json.loads(template.architecture(TABLE, head, each)) for each in (params, moved)]
        assert have_same_predictions(*texts) and have_same_sizes(*texts)
        assert rates(template, head, params) == rates(template, head, moved)
        assert not {name for name in moved if moved[name] != params[name]} & STAY
        assert template.params(head, ROWS, moved) == moved
        assert kin.mutate(params, draws, Random(seed)) == moved


@pytest.mark.parametrize(
    ("template", "head"),
    [*zip(TEMPLATES, cycle(HEADS), strict=False)],
    ids=[template.name for template in TEMPLATES],
)
def test_the_learning_rate_of_each_template_moves_and_what_makes_other_weights_stays(
    template: Template, head: Head
) -> None:
    searched, (params, *_) = drawn(template, head, 1, {})
    found = CloneMutation(template, TABLE, head).find_mutable_fields(
        params, find_distributions(template, searched)
    )
    assert "lr" in found and not STAY.intersection(found)
    fixed = SearchGoal(
        head, ROWS, {"lr": 0.01, "weight_decay": 0.0, "dropout": 0.0, "width": [8, 16]}
    )
    left = CloneMutation(template, TABLE, head).find_mutable_fields(
        {**params, "lr": 0.01}, find_distributions(template, fixed)
    )
    assert not {"lr", "weight_decay", "width"}.intersection(left)


def test_layers_that_drop_nothing_have_no_state_of_their_own() -> None:
    one, other, none = (
        {"class_name": "Dropout", "config": {"rate": rate}} for rate in (0.1, 0.2, 0.0)
    )
    assert have_same_predictions(one, other) and not have_same_predictions(one, none)
    assert not have_same_predictions({"units": 1}, {"units": 2}) and not have_same_predictions(
        {"scale": 1.0}, {"scale": 2.0}
    )
