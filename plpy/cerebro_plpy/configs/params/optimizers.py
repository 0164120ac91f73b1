"""Optimizer texts such as 'SGD(lr=0.01, decay=1e-6)' as configurations of Keras 3.

MADlib users write Keras 2 arguments. Keras 3 refuses some of them and silently ignores others
(`decay`). They are therefore rewritten here, where the user still gets a notice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cerebro_plpy.configs.params.keras_names import (
    BOOLEAN_ARGUMENTS,
    COMMON_ARGUMENTS,
    DROPPED_ARGUMENTS,
    LIST_ARGUMENTS,
    OPTIMIZERS,
    OWN_SCHEDULES,
    SCHEDULES,
    TEXT_ARGUMENTS,
    WHOLE_ARGUMENTS,
    find_optimizer,
    near_matches,
)
from cerebro_plpy.configs.params.literals import (
    Arguments,
    invalid_value,
    parse_call,
    read_boolean,
    read_number,
    read_whole_number,
    to_finite_number,
)
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass, field

_RENAMED = {"lr": "learning_rate"}

# All arguments that the text of an optimizer may contain.
ARGUMENTS = COMMON_ARGUMENTS.union(
    DROPPED_ARGUMENTS,
    _RENAMED,
    ["decay"],
    *(optimizer.arguments for optimizer in OPTIMIZERS.values()),
)


@dataclass(frozen=True)
class OptimizerSpec:
    """An optimizer of Keras 3."""

    class_name: str
    config: Arguments  # constructor arguments as JSON values
    notices: tuple[str, ...] = field(default=(), compare=False)
    """Notices on settings that Keras 3 does not have, which are left out."""

    def to_json(self) -> dict[str, object]:
        return {"class_name": self.class_name, "config": dict(self.config)}


def parse_optimizer(text: object) -> OptimizerSpec:
    """Parse the text of an optimizer: 'Name', 'Name()' or 'Name(key=value, …)'.

    The case of the name does not matter. None as a value means the optimizer's default.

    Raises:
        InvalidParameter, InvalidText: the text is invalid.
    """
    if not isinstance(text, str) or not text.strip():
        raise invalid_value("optimizer", text, "text such as 'Adam(lr=0.001)'")
    name, arguments = parse_call(text)
    class_name = find_optimizer(name)
    if class_name is None:
        raise InvalidParameter(
            f"model_keras error: invalid optimizer name: {name}",
            hint=near_matches(name, OPTIMIZERS),
        )
    arguments = {key: value for key, value in arguments.items() if value is not None}
    return _make_spec(class_name, arguments)


def _make_spec(class_name: str, arguments: Arguments) -> OptimizerSpec:
    dropped = sorted(DROPPED_ARGUMENTS & arguments.keys())
    notices = tuple(
        f"{class_name}: {key} has no equal in Keras 3 and is ignored" for key in dropped
    )
    config = {key: value for key, value in arguments.items() if key not in DROPPED_ARGUMENTS}
    if "lr" in config and "learning_rate" in config:
        raise InvalidParameter(f"{class_name}: lr and learning_rate are the same, give one of them")
    decay = config.pop("decay", None)
    checked = {
        _RENAMED.get(key, key): _check_argument(class_name, key, value)
        for key, value in config.items()
    }
    if decay is not None:
        checked |= _convert_decay(class_name, checked, read_number("decay", decay))
    return OptimizerSpec(class_name, checked, notices)


def _convert_decay(class_name: str, config: Arguments, decay: float) -> Arguments:
    """Return the learning rate schedule of the argument `decay`.

    Keras 2 divided the learning rate by 1 + decay * step, which is InverseTimeDecay in Keras 3.
    """
    if decay == 0:
        return {}
    if decay < 0:
        raise invalid_value("decay", decay, "a number that is not negative")
    initial = config.get("learning_rate", OPTIMIZERS[class_name].learning_rate)
    if isinstance(initial, dict):
        raise InvalidParameter(
            f"{class_name}: decay cannot be combined with a learning rate schedule"
        )
    settings = {"initial_learning_rate": initial, "decay_steps": 1, "decay_rate": decay}
    return {
        "learning_rate": _schedule("decay", {"class_name": "InverseTimeDecay", "config": settings})
    }


def _check_argument(class_name: str, key: str, value: object) -> object:
    accepted = COMMON_ARGUMENTS | OPTIMIZERS[class_name].arguments
    if _RENAMED.get(key, key) not in accepted:
        raise InvalidParameter(
            f"{key} is not currently accepted as a parameter of {class_name}.",
            hint=near_matches(key, accepted),
        )
    if _RENAMED.get(key, key) == "learning_rate":
        return _learning_rate(key, value)
    for keys, check in _CHECKS:
        if key in keys:
            return check(key, value)
    return read_number(key, value)


def _learning_rate(key: str, value: object) -> object:
    if isinstance(value, dict):
        return _schedule(key, value)
    rate = read_number(key, value)
    if rate < 0:
        raise invalid_value(key, value, "a number that is not negative, or a schedule")
    return rate


def _schedule(key: str, value: Mapping[Any, object]) -> Arguments:
    class_name = value.get("class_name")
    config = value.get("config")
    schedules = {**SCHEDULES, **OWN_SCHEDULES}
    if (
        not isinstance(class_name, str)
        or class_name not in schedules
        or not isinstance(config, dict)
    ):
        expected = f"{{'class_name': one of {', '.join(sorted(schedules))}, 'config': {{...}}}}"
        raise invalid_value(key, value, expected)
    unknown = [name for name in config if name not in schedules[class_name]]
    if unknown or not all(_is_plain(item) for item in config.values()):
        accepted = ", ".join(sorted(schedules[class_name]))
        raise invalid_value(key, value, f"{class_name} with numbers for {accepted}")
    return {
        "module": "keras.optimizers.schedules" if class_name in SCHEDULES else "cerebro_trainer",
        "class_name": class_name,
        "config": dict(config),
        "registered_name": None,
    }


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, str)) or to_finite_number(value) is not None


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise invalid_value(key, value, "text in quotes")
    return value


def _texts(key: str, value: object) -> list[str]:
    if not isinstance(value, list):
        raise invalid_value(key, value, "a list of texts")
    return [_text(key, item) for item in value]


_CHECKS: tuple[tuple[frozenset[str], Callable[[str, object], object]], ...] = (
    (BOOLEAN_ARGUMENTS, read_boolean),
    (WHOLE_ARGUMENTS, read_whole_number),
    (TEXT_ARGUMENTS, _text),
    (LIST_ARGUMENTS, _texts),
)


def choose_state_source(previous: OptimizerSpec | None, optimizer: OptimizerSpec) -> str:
    """Return the part of an earlier state of the same architecture to continue from.

    Returns:
        `chunks` for all of it, `warm` for all that fits, and `weights_of_chunks` for the weights
        alone, if the optimizer has another class.
    """
    if previous is None or previous.class_name != optimizer.class_name:
        return "weights_of_chunks"
    if _structure(previous) == _structure(optimizer):
        return "chunks"
    return "warm"


def _structure(optimizer: OptimizerSpec) -> Arguments:
    """Return the settings that determine the variables: all but a constant learning rate."""
    return {
        **optimizer.config,
        "learning_rate": isinstance(optimizer.config.get("learning_rate"), dict),
    }
