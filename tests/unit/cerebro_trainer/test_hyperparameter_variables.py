"""Which numbers of a configuration make another program, and which are variables of one that is
shared.
"""

from __future__ import annotations

from typing import Any

import pytest

from cerebro_trainer.models.program_spec import ProgramSpec, Target

SCHEDULES = {
    "CosineDecayRestarts": "first_decay_steps", "ExponentialDecay": "decay_rate",
    "InverseTimeDecay": "decay_rate", "PolynomialDecay": "decay_steps",
}  # fmt: skip
"""With a number that Keras looks at while it traces."""
STEPS = {"decay_steps": 30, "warmup_steps": 3, "warmup_target": 0.1}


def spec(rate: Any, class_name: str = "Adam", **config: Any) -> ProgramSpec:
    optimizer = {"class_name": class_name, "config": {"learning_rate": rate, **config}}
    return ProgramSpec(
        {"class_name": "Sequential"}, {"optimizer": optimizer, "loss": "mse"}, (Target(0),)
    )


def schedule(class_name: str, first: float, **config: float) -> dict[str, Any]:
    return {"class_name": class_name, "config": {"initial_learning_rate": first, **config}}


@pytest.mark.parametrize(("class_name", "number"), SCHEDULES.items())
def test_the_first_rate_of_a_schedule_is_a_variable(class_name: str, number: str) -> None:
    one, other = (spec(schedule(class_name, first, **{number: 3.0})) for first in (0.1, 0.2))
    assert one.key == other.key
    assert [each.split.hyperparameters for each in (one, other)] == [
        {"initial_learning_rate": 0.1}, {"initial_learning_rate": 0.2},
    ]  # fmt: skip
    assert spec(schedule(class_name, 0.1, **{number: 4.0})).key != one.key


def test_so_is_the_rate_that_a_warmup_comes_to() -> None:
    one, other = (spec(schedule("CosineDecay", 0.0, warmup_target=rate)) for rate in (0.1, 0.2))
    assert one.key == other.key != spec(schedule("CosineDecay", 0.0)).key
    assert other.split.hyperparameters == {"initial_learning_rate": 0.0, "warmup_target": 0.2}


@pytest.mark.parametrize("name", ["decay_steps", "warmup_steps"])
def test_so_are_the_steps_of_a_cosine(name: str) -> None:
    """Keras takes them as tensors: configurations over more rows, or fewer, share what is
    compiled.
    """
    one, other, none = (
        spec(schedule("CosineDecay", 0.0, **{**STEPS, name: steps})) for steps in (30, 40, 0)
    )
    assert one.key == other.key and other.split.hyperparameters[name] == 40.0
    assert none.key != one.key and name not in none.split.hyperparameters


@pytest.mark.parametrize("name", ["warmup_target", "decay_steps", "first_decay_steps"])
def test_so_are_the_numbers_of_cycles_but_for_how_many_there_are(name: str) -> None:
    cycles = {
        "warmup_target": 0.1,
        "decay_steps": 27,
        "first_decay_steps": 1,
        "t_mul": 3,
        "cycles": 4,
    }
    one, other = (
        {"class_name": "CosineCycles", "config": {**cycles, name: number}} for number in (5, 6)
    )
    assert spec(one).key == spec(other).key and spec(other).split.hyperparameters[name] == 6.0
    fewer = {"class_name": "CosineCycles", "config": {**cycles, "cycles": 3}}
    assert spec(fewer).key != spec(one).key


def test_rates_and_schedules_are_different_programs() -> None:
    keys = {
        spec(0.1).key,
        spec(schedule("CosineDecay", 0.1)).key,
        spec(schedule("PolynomialDecay", 0.1)).key,
    }
    assert len(keys) == 3 and spec(0.1).key == spec(0.2).key
    assert spec(0.1, momentum=0.5).key != spec(0.1, momentum=0.9).key


@pytest.mark.parametrize(
    "rate",
    [
        schedule("PiecewiseConstantDecay", 0.1),
        {"class_name": "CosineDecay"},
        {"class_name": "CosineDecay", "config": 3},
    ],
)
def test_what_has_no_first_rate_stays_as_it_is(rate: dict[str, Any]) -> None:
    assert spec(rate).split.hyperparameters == {}
