"""Hyperparameters that become variables of a program, so that more configs can share it.

Learning rates, decay rates and weights of regularizers do not change the graph. As variables they
are not part of a program's key. Numbers that Keras reads while it traces (momentum, clipping)
remain constants, and part of the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cerebro_trainer.models.allowlist import parse_names
from cerebro_trainer.models.layer_arguments import Node
from cerebro_trainer.wire.fields import is_number

OPTIMIZER_ARGUMENTS = ("learning_rate", "beta_1", "beta_2", "rho", "epsilon", "weight_decay")
OPTIMIZERS = parse_names("adadelta adagrad adam adamax adamw lion nadam rmsprop sgd")
COSINE_CYCLES = "cosinecycles"
COSINE_DECAY = "cosinedecay"
SCHEDULES = parse_names("""
    cosinecycles cosinedecay cosinedecayrestarts exponentialdecay inversetimedecay polynomialdecay
""")
"""Schedules whose rates are tensors in Keras; it reads most other arguments while it traces."""
RATE_ARGUMENTS = ("initial_learning_rate", "warmup_target")
STEP_ARGUMENTS: Mapping[str, Sequence[str]] = {
    COSINE_CYCLES: ("decay_steps", "first_decay_steps"),
    COSINE_DECAY: ("decay_steps", "warmup_steps"),
}
"""Numbers of steps that are tensors, too, so that configs over more or fewer rows share a program.
"""
SCHEDULE_ARGUMENTS = frozenset(
    {*RATE_ARGUMENTS, *STEP_ARGUMENTS[COSINE_CYCLES], *STEP_ARGUMENTS[COSINE_DECAY]}
)
REGULARIZER_ARGUMENTS = {"L1": "l1", "L2": "l2"}
PLACEHOLDER = "a number"
"""Replaces a number in the key of a program."""
OUTPUT_REGULARIZER = "activity_regularizer"
"""A regularizer of a layer's outputs, which cannot be found from a variable."""


@dataclass(frozen=True)
class Split:
    """A program without the numbers that become variables, and these numbers.

    In `architecture` the k-th regularizer has k + 1 as its number, so that it can be found in the
    model.
    """

    architecture: Node
    optimizer: Node
    regularizers: tuple[float, ...]
    hyperparameters: dict[str, float]


def split_hyperparameters(architecture: Node, optimizer: object) -> Split:
    """Separate the numbers from an architecture and an optimizer's {"class_name", "config"}."""
    regularizers: list[float] = []
    numbered = _number_regularizers(architecture, regularizers)
    if not isinstance(optimizer, dict) or not isinstance(optimizer.get("config"), dict):
        return Split(numbered, {"optimizer": optimizer}, tuple(regularizers), {})
    config = optimizer["config"]
    names: tuple[str, ...] = OPTIMIZER_ARGUMENTS
    if str(optimizer.get("class_name")).lower() not in OPTIMIZERS:
        names = ("learning_rate",)
    hyperparameters = {name: float(config[name]) for name in names if is_number(config.get(name))}
    shared_config = {**config, **dict.fromkeys(hyperparameters, PLACEHOLDER)}
    schedule = config.get("learning_rate")
    schedule_numbers = _read_schedule(schedule)
    if schedule_numbers:
        schedule_config = {**schedule["config"], **dict.fromkeys(schedule_numbers, PLACEHOLDER)}
        shared_config["learning_rate"] = {**schedule, "config": schedule_config}
    return Split(
        architecture=numbered,
        optimizer={"optimizer": {**optimizer, "config": shared_config}},
        regularizers=tuple(regularizers),
        hyperparameters={**hyperparameters, **schedule_numbers},
    )


def attach_regularizers(numbers: Sequence[Any], variables: Iterable[Any]) -> None:
    """Make the regularizers of a model use variables as their numbers.

    Args:
        numbers: the variables with the numbers.
        variables: the variables of a model that was built from a split architecture.
    """
    for variable in variables:
        regularizer = variable.regularizer
        name = REGULARIZER_ARGUMENTS.get(type(regularizer).__name__)
        if name and isinstance(getattr(regularizer, name), float):
            setattr(regularizer, name, numbers[int(getattr(regularizer, name)) - 1])


def _number_regularizers(node: Any, regularizers: list[float]) -> Any:
    """Replace the numbers of regularizers, and append them to a list."""
    if isinstance(node, list):
        return [_number_regularizers(part, regularizers) for part in node]
    if not isinstance(node, Mapping):
        return node
    name = REGULARIZER_ARGUMENTS.get(str(node.get("class_name")))
    config = node.get("config")
    if name and isinstance(config, Mapping) and is_number(config.get(name)):
        regularizers.append(float(config[name]))
        return {**node, "config": {**config, name: float(len(regularizers))}}
    return {
        key: part if key == OUTPUT_REGULARIZER else _number_regularizers(part, regularizers)
        for key, part in node.items()
    }


def _read_schedule(schedule: Any) -> dict[str, float]:
    """Return the numbers of a schedule that can be variables.

    Invalid numbers of steps remain in the schedule, so that Keras refuses them.
    """
    if not isinstance(schedule, Mapping):
        return {}
    name = str(schedule.get("class_name")).lower()
    config = schedule.get("config")
    if name not in SCHEDULES or not isinstance(config, Mapping):
        return {}
    rates = [key for key in RATE_ARGUMENTS if is_number(config.get(key))]
    steps = [
        key
        for key in STEP_ARGUMENTS.get(name, ())
        if is_number(config.get(key)) and config[key] > 0
    ]
    return {key: float(config[key]) for key in (*rates, *steps)}
