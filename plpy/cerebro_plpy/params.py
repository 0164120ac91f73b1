"""Compile and fit parameter strings: what one configuration asks for, checked before anything is trained.

The strings are MADlib's, `key=value` pairs in any order. Everything is checked here that can be without
Keras, so that a run does not start only to find a misspelt loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Union

from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter
from cerebro_plpy.keras_names import LOSSES, METRICS, find_loss, find_metric, find_optimizer, near_matches
from cerebro_plpy.literals import call, finite_number, invalid_value, keywords
from cerebro_plpy.optimizers import OptimizerSpec, parse_optimizer

COMPILE_KEYS = ("optimizer", "loss", "metrics", "loss_weights", "weighted_metrics", "sample_weight_mode")
FIT_KEYS = ("batch_size", "epochs", "shuffle", "verbose")
LATER_FIT_KEYS = ("class_weight", "initial_epoch", "steps_per_epoch", "callbacks")

_LARGEST = 2**31 - 1  # what PostgreSQL's integer holds

Loss = Union[str, list[str], dict[str, str]]
LossWeights = Union[list[float], dict[str, float], None]


@dataclass(frozen=True)
class CompileParams:
    """What a model is compiled with, in the names of Keras 3.

    `loss_given` and `metrics_given` keep the user's spelling; `notices` tells of settings left out.
    """

    optimizer: OptimizerSpec
    loss: Loss
    metrics: tuple[str, ...] = ()
    loss_weights: LossWeights = None
    weighted_metrics: tuple[str, ...] | None = None
    loss_given: str = field(default="", compare=False)
    metrics_given: tuple[str, ...] = field(default=(), compare=False)
    notices: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, object]:
        return {
            "optimizer": self.optimizer.to_json(),
            "loss": self.loss,
            "metrics": list(self.metrics),
            "loss_weights": self.loss_weights,
            "weighted_metrics": None if self.weighted_metrics is None else list(self.weighted_metrics),
        }


@dataclass(frozen=True)
class FitParams:
    """How a visit goes through its partition; `epochs` counts passes over the partition in one visit."""

    batch_size: int = 32
    epochs: int = 1
    shuffle: bool = True
    verbose: int = 0

    def to_json(self) -> dict[str, object]:
        return {
            "batch_size": self.batch_size,
            "epochs": self.epochs,
            "shuffle": self.shuffle,
            "verbose": self.verbose,
        }


def parse_compile_params(text: str) -> CompileParams:
    """The compile parameters written as `key=value, …`.

    >>> parse_compile_params("loss='mse', optimizer='SGD(lr=0.1)'").to_json()["optimizer"]
    {'class_name': 'SGD', 'config': {'learning_rate': 0.1}}

    Raises InvalidText for broken syntax, InvalidParameter for unknown or bad settings and
    FeatureNotSupported for those that are understood but not available.
    """
    given = keywords(text)
    _refuse_unknown(given, COMPILE_KEYS)
    for key in ("optimizer", "loss"):
        if key not in given:
            raise InvalidParameter(f"{key} is a required parameter for compile", hint=f"Add {key}='...'.")
    _refuse_sample_weights(given.get("sample_weight_mode"))
    optimizer = parse_optimizer(given["optimizer"])
    loss = given["loss"]
    metrics = given.get("metrics")
    weighted = given.get("weighted_metrics")
    return CompileParams(
        optimizer=optimizer,
        loss=_loss(loss),
        metrics=_metrics("metrics", metrics),
        loss_weights=_loss_weights(given.get("loss_weights")),
        weighted_metrics=None if weighted is None else _metrics("weighted_metrics", weighted),
        loss_given=loss if isinstance(loss, str) else repr(loss),
        metrics_given=tuple(metrics) if isinstance(metrics, list) else (),
        notices=optimizer.notices,
    )


def parse_fit_params(text: str | None) -> FitParams:
    """The fit parameters written as `key=value, …`; None and empty text mean the defaults.

    >>> parse_fit_params("epochs=2")
    FitParams(batch_size=32, epochs=2, shuffle=True, verbose=0)

    Raises as `parse_compile_params` does.
    """
    given = keywords(text or "")
    for key in LATER_FIT_KEYS:
        if key in given:
            raise FeatureNotSupported(f"fit parameter {key} is not supported", hint=f"Use {', '.join(FIT_KEYS)} only.")
    _refuse_unknown(given, FIT_KEYS)
    default = FitParams()
    return FitParams(
        batch_size=_positive("batch_size", given.get("batch_size", default.batch_size)),
        epochs=_positive("epochs", given.get("epochs", default.epochs)),
        shuffle=_boolean("shuffle", given.get("shuffle", default.shuffle)),
        verbose=_verbosity(given.get("verbose", default.verbose)),
    )


def canonical(text: str | None) -> str:
    """One spelling for all parameter texts that differ only in white space and the order of keys.

    >>> canonical("loss='mse', optimizer='adam(beta_1=0.5, lr=0.10)'")
    "loss='mse',optimizer='Adam(beta_1=0.5,lr=0.1)'"
    """
    given = keywords(text or "")
    return ",".join(f"{key}={_canonical_value(key, given[key])}" for key in sorted(given))


def _canonical_value(key: str, value: object) -> str:
    if key == "optimizer" and isinstance(value, str):
        name, arguments = call(value)
        ordered = ",".join(f"{key}={_ordered(arguments[key])}" for key in sorted(arguments))
        return repr(f"{find_optimizer(name) or name}({ordered})")
    return _ordered(value)


def _ordered(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{key!r}:{_ordered(item)}" for key, item in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_ordered(item) for item in value) + "]"
    return repr(value)


def _refuse_unknown(given: Iterable[str], accepted: tuple[str, ...]) -> None:
    for key in given:
        if key not in accepted:
            raise InvalidParameter(f"{key} is not currently accepted as a parameter.", hint=near_matches(key, accepted))


def _refuse_sample_weights(mode: object) -> None:
    if mode == "temporal":
        raise FeatureNotSupported(
            "sample_weight_mode='temporal' is not supported", hint="Leave sample_weight_mode out."
        )
    if mode is not None:
        raise invalid_value("sample_weight_mode", repr(mode), "None")


def _loss(value: object) -> Loss:
    if isinstance(value, str):
        return _loss_name(value)
    if isinstance(value, list) and value:
        return [_loss_name(item) for item in value]
    if isinstance(value, dict) and value:
        return {_output(key, value): _loss_name(item) for key, item in value.items()}
    raise invalid_value("loss", repr(value), "a name such as 'mse', or one name per output of the model")


def _loss_name(value: object) -> str:
    name = find_loss(value) if isinstance(value, str) else None
    if name is None:
        raise InvalidParameter(f"Loss function {value} is not supported.", hint=near_matches(str(value), LOSSES))
    return name


def _metrics(key: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise invalid_value(key, repr(value), "a list such as ['accuracy']")
    return tuple(_metric_name(item) for item in value)


def _metric_name(value: object) -> str:
    name = find_metric(value) if isinstance(value, str) else None
    if name is None:
        raise InvalidParameter(f"Metric {value} is not supported.", hint=near_matches(str(value), METRICS))
    return name


def _loss_weights(value: object) -> LossWeights:
    if value is None:
        return None
    if isinstance(value, list):
        return [_weight(item, value) for item in value]
    if isinstance(value, dict):
        return {_output(key, value): _weight(item, value) for key, item in value.items()}
    raise invalid_value("loss_weights", repr(value), "a list, or a dict by output name, of numbers")


def _output(key: object, value: object) -> str:
    if not isinstance(key, str):
        raise invalid_value("loss or loss_weights", repr(value), "the names of the model's outputs as keys")
    return key


def _weight(item: object, value: object) -> float:
    number = finite_number(item)
    if number is None:
        raise invalid_value("loss_weights", repr(value), "numbers")
    return number


def _positive(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _LARGEST:
        raise invalid_value(key, repr(value), f"a whole number from 1 to {_LARGEST}")
    return value


def _boolean(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise invalid_value(key, repr(value), "True or False")
    return value


def _verbosity(value: object) -> int:
    if not isinstance(value, int) or value not in (0, 1, 2):
        raise invalid_value("verbose", repr(value), "0, 1 or 2")
    return int(value)
