"""Optimizer texts such as 'SGD(lr=0.01, decay=1e-6)' as what Keras 3 builds an optimizer from.

MADlib users write Keras 2 arguments. Keras 3 refuses some of them and silently ignores others
(`decay`), so they are rewritten here, where the user can still be told.
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
    boolean,
    call,
    finite_number,
    invalid_value,
    number,
    whole,
)
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass, field

_RENAMED = {"lr": "learning_rate"}

# Every argument that the text of some optimizer may hold.
ARGUMENTS = COMMON_ARGUMENTS.union(
    DROPPED_ARGUMENTS,
    _RENAMED,
    ["decay"],
    *(optimizer.arguments for optimizer in OPTIMIZERS.values()),
)


@dataclass(frozen=True)
class OptimizerSpec:
    """An optimizer class of Keras 3 and its constructor arguments as JSON values.

    `notices` tells of settings without an equal in Keras 3, which are left out.
    """

    class_name: str
    config: dict[str, object]
    notices: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, object]:
        return {"class_name": self.class_name, "config": dict(self.config)}


def parse_optimizer(text: object) -> OptimizerSpec:
    """The optimizer that 'Name', 'Name()' or 'Name(key=value, …)' stands for; the name in any case.

    None as a value means the optimizer's default. Raises InvalidParameter or InvalidText.
    """
    if not isinstance(text, str) or not text.strip():
        raise invalid_value("optimizer", repr(text), "text such as 'Adam(lr=0.001)'")
    name, arguments = call(text)
    class_name = find_optimizer(name)
    if class_name is None:
        raise InvalidParameter(
            f"model_keras error: invalid optimizer name: {name}",
            hint=near_matches(name, OPTIMIZERS),
        )
    given = {key: value for key, value in arguments.items() if value is not None}
    return _spec(class_name, given)


def _spec(class_name: str, given: dict[str, object]) -> OptimizerSpec:
    dropped = sorted(DROPPED_ARGUMENTS & given.keys())
    notices = tuple(
        f"{class_name}: {key} has no equal in Keras 3 and is ignored" for key in dropped
    )
    config = {key: value for key, value in given.items() if key not in DROPPED_ARGUMENTS}
    if "lr" in config and "learning_rate" in config:
        raise InvalidParameter(f"{class_name}: lr and learning_rate are the same, give one of them")
    decay = config.pop("decay", None)
    checked = {
        _RENAMED.get(key, key): _checked(class_name, key, value) for key, value in config.items()
    }
    if decay is not None:
        checked |= _decayed(class_name, checked, number("decay", decay))
    return OptimizerSpec(class_name, checked, notices)


def _decayed(class_name: str, config: dict[str, object], decay: float) -> dict[str, object]:
    """Keras 2 divided the learning rate by 1 + decay * step, which Keras 3 calls
    InverseTimeDecay.
    """
    if decay == 0:
        return {}
    if decay < 0:
        raise invalid_value("decay", repr(decay), "a number that is not negative")
    initial = config.get("learning_rate", OPTIMIZERS[class_name].learning_rate)
    if isinstance(initial, dict):
        raise InvalidParameter(
            f"{class_name}: decay cannot be combined with a learning rate schedule"
        )
    settings = {"initial_learning_rate": initial, "decay_steps": 1, "decay_rate": decay}
    return {
        "learning_rate": _schedule("decay", {"class_name": "InverseTimeDecay", "config": settings})
    }


def _checked(class_name: str, key: str, value: object) -> object:
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
    return number(key, value)


def _learning_rate(key: str, value: object) -> object:
    if isinstance(value, dict):
        return _schedule(key, value)
    rate = number(key, value)
    if rate < 0:
        raise invalid_value(key, repr(value), "a number that is not negative, or a schedule")
    return rate


def _schedule(key: str, value: Mapping[Any, object]) -> dict[str, object]:
    class_name, config = value.get("class_name"), value.get("config")
    offered = {**SCHEDULES, **OWN_SCHEDULES}
    if not isinstance(class_name, str) or class_name not in offered or not isinstance(config, dict):
        expected = f"{{'class_name': one of {', '.join(sorted(offered))}, 'config': {{...}}}}"
        raise invalid_value(key, repr(value), expected)
    unknown = [name for name in config if name not in offered[class_name]]
    if unknown or not all(_is_plain(item) for item in config.values()):
        accepted = ", ".join(sorted(offered[class_name]))
        raise invalid_value(key, repr(value), f"{class_name} with numbers for {accepted}")
    return {
        "module": "keras.optimizers.schedules" if class_name in SCHEDULES else "cerebro_trainer",
        "class_name": class_name,
        "config": dict(config),
        "registered_name": None,
    }


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, str)) or finite_number(value) is not None


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise invalid_value(key, repr(value), "text in quotes")
    return value


def _texts(key: str, value: object) -> list[str]:
    if not isinstance(value, list):
        raise invalid_value(key, repr(value), "a list of texts")
    return [_text(key, item) for item in value]


_CHECKS: tuple[tuple[frozenset[str], Callable[[str, object], object]], ...] = (
    (BOOLEAN_ARGUMENTS, boolean),
    (WHOLE_ARGUMENTS, whole),
    (TEXT_ARGUMENTS, _text),
    (LIST_ARGUMENTS, _texts),
)


def goes_on_with(before: OptimizerSpec | None, optimizer: OptimizerSpec) -> str:
    """What of an earlier state of the same architecture one goes on with: `chunks`, all of it;
    `warm`, all that fits; `weights_of_chunks` alone, for an optimizer of another class."""
    if before is None or before.class_name != optimizer.class_name:
        return "weights_of_chunks"
    return "chunks" if _structure(before) == _structure(optimizer) else "warm"


def _structure(optimizer: OptimizerSpec) -> dict[str, object]:
    """What decides which variables an optimizer has: its settings but the learning rate, if that is
    a number.
    """
    return {
        **optimizer.config,
        "learning_rate": isinstance(optimizer.config.get("learning_rate"), dict),
    }
