"""Where a configuration lies in a space of parameters: the other way round from a point to its
texts.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.search_space.distributions import Choices
from cerebro_plpy.configs.search_space.sampler_space import ParameterSpace
from cerebro_plpy.configs.search_space.space import read_space

COMPILE = """{'loss': ['categorical_crossentropy', 'mse'], 'optimizer_params_list': [
    {'optimizer': ['SGD'], 'lr': [0.001, 0.1, 'log'], 'momentum': [0.1, 0.99, 'log_near_one']},
    {'optimizer': ['Adam', 'Adagrad'], 'lr': [0.01, 0.02, 'linear']}], 'metrics': ['accuracy',
        ['mae', 'mse']]}"""
SPACE = ParameterSpace(
    read_space(COMPILE, "{'batch_size': [4, 16, 'linear'], 'epochs': [1, 2]}", [1, 2])
)
INSIDE = {
    "model_id": 2,
    "compile_params": "optimizer='SGD(lr=0.01,momentum=0.9)',loss='mse',metrics=['accuracy']",
    "fit_params": "batch_size=8,epochs=2",
}


@given(st.integers(0, 10**6))
def test_a_configuration_lies_where_it_came_from(seed: int) -> None:
    drawn = random.Random(seed)
    alternative = drawn.randrange(len(SPACE.space.alternatives))
    values = dict[object, float]()
    for dimension in SPACE.describe()[alternative]:
        low, high = dimension.get("low", 0), dimension.get("high", 0)
        if dimension["kind"] == "choice":
            values[dimension["name"]] = drawn.randrange(int(str(dimension["count"])))
        elif dimension["kind"] == "whole":
            values[dimension["name"]] = drawn.randint(int(str(low)), int(str(high)))
        else:
            values[dimension["name"]] = drawn.uniform(float(str(low)), float(str(high)))
    row = SPACE.make_row({"alternative": alternative, "values": values})
    found = SPACE.find_point(row)
    assert found is not None and found["alternative"] == alternative
    assert found["values"] == {
        name: pytest.approx(value, rel=1e-9) for name, value in values.items()
    }
    assert SPACE.find_point(SPACE.make_row(found)) == found


@pytest.mark.parametrize(
    "other",
    [
        {
            "compile_params": "loss='mse',metrics=['accuracy'],optimizer='sgd(momentum=0.9, "
            "learning_rate=0.01)'"
        },
        {"compile_params": "optimizer='SGD(momentum=0.9,lr=0.01)',metrics='accuracy',loss='mse'"},
        {"fit_params": "epochs = 2, batch_size = 8"},
    ],
)
def test_another_spelling_is_the_same_point(other: dict[str, str]) -> None:
    assert SPACE.find_point({**INSIDE, **other}) == SPACE.find_point(INSIDE) != None  # noqa: E711


@pytest.mark.parametrize(
    "other",
    [
        {"model_id": 3},
        {"compile_params": "optimizer='SGD(lr=0.2,momentum=0.9)',loss='mse',metrics=['accuracy']"},
        {"compile_params": "optimizer='SGD(lr=0.01)',loss='mse',metrics=['accuracy']"},
        {
            "compile_params": "optimizer='SGD(lr=0.01,momentum=0.9,nesterov=True)',loss='mse',"
            "metrics=['accuracy']"
        },
        {
            "compile_params": "optimizer='SGD(lr=CosineDecay(0.1, "
            "9),momentum=0.9)',loss='mse',metrics=['accuracy']"
        },
        {"compile_params": "optimizer='Nadam(lr=0.01)',loss='mse',metrics=['accuracy']"},
        {"compile_params": "optimizer='SGD(lr=0.01,momentum=0.9)',loss='mae',metrics=['accuracy']"},
        {"compile_params": "optimizer='SGD(lr=0.01,momentum=0.9)',loss='mse'"},
        {"compile_params": "nothing"},
        {"fit_params": "batch_size=8"},
        {"fit_params": "batch_size=8.5,epochs=2"},
        {"fit_params": "batch_size=8,epochs=2,shuffle=False"},
        {"fit_params": "batch_size=8,epochs=3"},
    ],
    ids=str,
)
def test_what_is_not_of_the_space_lies_nowhere(other: dict[str, object]) -> None:
    assert SPACE.find_point({**INSIDE, **other}) is None


def test_an_optimizer_that_nobody_names_is_the_usual_one() -> None:
    space = ParameterSpace(
        read_space("{'loss': ['mse'], 'lr': [0.1, 0.2]}", "{'batch_size': [8]}", [1])
    )
    row = {"model_id": 1, "fit_params": "batch_size=8"}
    assert (
        space.find_point({**row, "compile_params": "optimizer='RMSprop(lr=0.2)',loss='mse'"})
        is not None
    )
    assert space.find_point({**row, "compile_params": "optimizer='SGD(lr=0.2)',loss='mse'"}) is None
    assert isinstance(space.space.alternatives[0]["lr"], Choices)
