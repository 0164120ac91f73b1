"""Numbers of a configuration that its program need not know when it is compiled.

Learning rates, decay rates and the weights of regularizers change no graph: they become variables,
so that configs that differ in nothing else share one program. Numbers that Keras looks at while it
traces (momentum, clipping) stay constants, and part of the program's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OPTIMIZER = ("learning_rate", "beta_1", "beta_2", "rho", "epsilon", "weight_decay")
OPTIMIZERS = frozenset(
    {"adadelta", "adagrad", "adam", "adamax", "adamw", "lion", "nadam", "rmsprop", "sgd"}
)
CYCLES, COSINE = "cosinecycles", "cosinedecay"
SCHEDULES = frozenset(
    {
        CYCLES,
        COSINE,
        "cosinedecayrestarts",
        "exponentialdecay",
        "inversetimedecay",
        "polynomialdecay",
    }
)
"""Their rates are tensors to Keras; most of their other numbers it looks at while it traces."""
RATES = ("initial_learning_rate", "warmup_target")
STEPS: Mapping[str, Sequence[str]] = {
    CYCLES: ("decay_steps", "first_decay_steps"),
    COSINE: ("decay_steps", "warmup_steps"),
}
"""Numbers of steps that they take as tensors, too: configs over more rows, or fewer, share a
program.
"""
SCHEDULED = frozenset({*RATES, *STEPS[CYCLES], *STEPS[COSINE]})
REGULARIZERS = {"L1": "l1", "L2": "l2"}
NUMBER = "a number"
"""What stands in a program's key instead of one."""
NOT_OF_WEIGHTS = "activity_regularizer"
"""Belongs to a layer's outputs; no variable leads to it."""


@dataclass(frozen=True)
class Split:
    """A program without its numbers, and the numbers.

    In `architecture` the k-th regularizer that was found has the number k + 1 instead of its own,
    so that it can be found again in the model that is built of it.
    """

    architecture: dict[str, Any]
    optimizer: dict[str, Any]
    regularizers: tuple[float, ...]
    hyperparameters: dict[str, float]


def split(architecture: dict[str, Any], optimizer: object) -> Split:
    """Take the numbers out of an architecture and an optimizer's {"class_name", "config"}."""
    found: list[float] = []
    shape = _numbered(architecture, found)
    if not isinstance(optimizer, dict) or not isinstance(optimizer.get("config"), dict):
        return Split(shape, {"optimizer": optimizer}, tuple(found), {})
    config = optimizer["config"]
    names = OPTIMIZER if str(optimizer.get("class_name")).lower() in OPTIMIZERS else OPTIMIZER[:1]
    taken = {name: float(config[name]) for name in names if _is_number(config.get(name))}
    left = {name: NUMBER if name in taken else value for name, value in config.items()}
    schedule = config.get("learning_rate")
    scheduled = _scheduled(schedule)
    if scheduled:
        left["learning_rate"] = {
            **schedule,
            "config": {**schedule["config"], **dict.fromkeys(scheduled, NUMBER)},
        }
    return Split(
        shape, {"optimizer": {**optimizer, "config": left}}, tuple(found), {**taken, **scheduled}
    )


def attach(numbers: Sequence[Any], variables: Iterable[Any]) -> None:
    """Make the regularizers of these variables, built from a split architecture, use variables as
    numbers.
    """
    for variable in variables:
        regularizer = variable.regularizer
        name = REGULARIZERS.get(type(regularizer).__name__)
        if name and isinstance(getattr(regularizer, name), float):
            setattr(regularizer, name, numbers[int(getattr(regularizer, name)) - 1])


def _numbered(node: Any, found: list[float]) -> Any:
    if isinstance(node, list):
        return [_numbered(part, found) for part in node]
    if not isinstance(node, Mapping):
        return node
    name, config = REGULARIZERS.get(str(node.get("class_name"))), node.get("config")
    if name and isinstance(config, Mapping) and _is_number(config.get(name)):
        found.append(float(config[name]))
        return {**node, "config": {**config, name: float(len(found))}}
    return {
        key: part if key == NOT_OF_WEIGHTS else _numbered(part, found) for key, part in node.items()
    }


def _scheduled(schedule: Any) -> dict[str, float]:
    """The numbers of a schedule that can be variables; Keras is to refuse steps that are none."""
    name = str(schedule.get("class_name")).lower() if isinstance(schedule, Mapping) else ""
    config = schedule.get("config") if name in SCHEDULES else None
    if not isinstance(config, Mapping):
        return {}
    steps = (key for key in STEPS.get(name, ()) if _is_number(config.get(key)) and config[key] > 0)
    return {
        key: float(config[key])
        for key in (*(rate for rate in RATES if _is_number(config.get(rate))), *steps)
    }


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
