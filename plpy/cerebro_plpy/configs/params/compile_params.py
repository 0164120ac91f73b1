"""Compile parameter strings of a configuration, checked before the training.

The strings are MADlib's, `key=value` pairs in any order. All checks that do not need Keras are made
here, so that a run with a misspelt loss does not start. Names that Keras does not know may be
custom functions of an administrator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Optional, Union

from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.configs.params.keras_names import (
    LOSSES,
    METRICS,
    find_loss,
    find_metric,
    find_optimizer,
    near_matches,
)
from cerebro_plpy.configs.params.literals import (
    invalid_value,
    parse_call,
    parse_keywords,
    to_finite_number,
)
from cerebro_plpy.configs.params.optimizers import OptimizerSpec, parse_optimizer
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter
from cerebro_plpy.records import dataclass, field, replace

COMPILE_KEYS = (
    "optimizer",
    "loss",
    "metrics",
    "loss_weights",
    "weighted_metrics",
    "sample_weight_mode",
)
# MADlib reads these with and without quotes.
UNQUOTED = ("optimizer", "loss")

Loss = Union[str, list[Optional[str]], dict[str, str]]
LossWeights = Union[list[float], dict[str, float], None]
# A list of names, a list with an entry for each output of the model, or a dict by the names of the
# outputs; see `output_losses`.
OutputMetrics = Union[str, list[str], None]
Metrics = Union[tuple[OutputMetrics, ...], dict[str, OutputMetrics]]


@dataclass(frozen=True)
class CompileParams:
    """The compile parameters of a model, named as in Keras 3."""

    optimizer: OptimizerSpec
    loss: Loss
    metrics: Metrics = ()
    loss_weights: LossWeights = None
    weighted_metrics: Metrics | None = None
    custom: Functions | None = None  # functions that Keras does not know
    loss_text: str = field(default="", compare=False)  # in the user's spelling
    metrics_as_written: Metrics = field(default=(), compare=False)
    notices: tuple[str, ...] = field(default=(), compare=False)  # on settings that are left out

    @property
    def custom_names(self) -> frozenset[str]:
        """Return the names of functions that Keras does not know."""
        losses = {name for name in _list_names(self.loss) if find_loss(name) is None}
        metrics = (*_list_names(self.metrics), *_list_names(self.weighted_metrics))
        return frozenset(losses.union(name for name in metrics if not find_metric(name)))

    def to_json(self) -> dict[str, object]:
        """Return the parameters for the trainer; without custom functions, `objects` is missing."""
        custom: dict[str, object] = {}
        if self.custom is not None:
            custom["objects"] = self.custom.to_json()
        return {
            **custom,
            "optimizer": self.optimizer.to_json(),
            "loss": self.loss,
            "metrics": _metrics_to_json(self.metrics),
            "loss_weights": self.loss_weights,
            "weighted_metrics": _metrics_to_json(self.weighted_metrics),
        }


def _metrics_to_json(metrics: Metrics | None) -> object:
    if isinstance(metrics, tuple):
        return list(metrics)
    return metrics


def _list_names(value: object) -> Iterator[str]:
    """Yield all names in losses or metrics of any form."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _list_names(item)


def parse_compile_params(text: str, functions: Functions | None = None) -> CompileParams:
    """Parse compile parameters such as `key=value, …`.

    Args:
        functions: functions of the object table, if there is one.

    Raises:
        InvalidText: the syntax is wrong.
        InvalidParameter: a setting is unknown or invalid.
        FeatureNotSupported: a setting is not supported.

    >>> parse_compile_params("loss='mse', optimizer='SGD(lr=0.1)'").to_json()["optimizer"]
    {'class_name': 'SGD', 'config': {'learning_rate': 0.1}}
    """
    values = parse_keywords(text, UNQUOTED)
    refuse_unknown(values, COMPILE_KEYS)
    for key in ("optimizer", "loss"):
        if key not in values:
            raise InvalidParameter(
                f"{key} is a required parameter for compile", hint=f"Add {key}='...'."
            )
    _refuse_sample_weights(values.get("sample_weight_mode"))
    optimizer = parse_optimizer(values["optimizer"])
    loss = values["loss"]
    metrics = _metrics("metrics", values.get("metrics"), functions)
    if metrics is None:
        metrics = ()
    parsed = CompileParams(
        optimizer=optimizer,
        loss=_loss(loss, functions),
        metrics=metrics,
        loss_weights=_loss_weights(values.get("loss_weights")),
        weighted_metrics=_metrics("weighted_metrics", values.get("weighted_metrics"), functions),
        loss_text=loss if isinstance(loss, str) else repr(loss),
        metrics_as_written=_copy_metrics(values.get("metrics")),
        notices=optimizer.notices,
    )
    if functions and parsed.custom_names:
        return replace(parsed, custom=functions.select(parsed.custom_names))
    return parsed


def canonicalize(text: str | None) -> str:
    """Return one spelling for texts that differ only in white space and in the order of keys.

    >>> canonicalize("loss='mse', optimizer='adam(beta_1=0.5, lr=0.10)'")
    "loss='mse',optimizer='Adam(beta_1=0.5,lr=0.1)'"
    """
    values = parse_keywords(text or "", UNQUOTED)
    return ",".join(f"{key}={_canonical_value(key, values[key])}" for key in sorted(values))


def _canonical_value(key: str, value: object) -> str:
    if key == "optimizer" and isinstance(value, str):
        name, arguments = parse_call(value)
        ordered = ",".join(f"{key}={_sort_keys(arguments[key])}" for key in sorted(arguments))
        return repr(f"{find_optimizer(name) or name}({ordered})")
    return _sort_keys(value)


def _sort_keys(value: object) -> str:
    if isinstance(value, dict):
        items = sorted(f"{key!r}:{_sort_keys(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_sort_keys, value)) + "]"
    return repr(value)


def refuse_unknown(keys: Iterable[str], accepted: tuple[str, ...]) -> None:
    """Check that all keys are accepted.

    Raises:
        InvalidParameter: a key is not accepted.
    """
    for key in keys:
        if key not in accepted:
            raise InvalidParameter(
                f"{key} is not currently accepted as a parameter.", hint=near_matches(key, accepted)
            )


def _refuse_sample_weights(mode: object) -> None:
    if mode == "temporal":
        raise FeatureNotSupported(
            "sample_weight_mode='temporal' is not supported", hint="Leave sample_weight_mode out."
        )
    if mode is not None:
        raise invalid_value("sample_weight_mode", mode, "None")


def _loss(value: object, functions: Functions | None) -> Loss:
    if isinstance(value, str):
        return _loss_name(value, functions)
    if isinstance(value, list) and any(item is not None for item in value):
        return [None if item is None else _loss_name(item, functions) for item in value]
    if isinstance(value, dict) and value:
        _check_output_names("loss", value)
        return {name: _loss_name(item, functions) for name, item in value.items()}
    raise invalid_value("loss", value, "a name such as 'mse', or one name per output of the model")


def _loss_name(value: object, functions: Functions | None) -> str:
    if isinstance(value, str) and (name := find_loss(value)):
        return name
    refusal = f"Loss function {value} is not supported."
    return _custom(value, functions, refusal, near_matches(str(value), LOSSES))


def _custom(value: object, functions: Functions | None, refusal: str, hint: str) -> str:
    """Return the name of a custom function, in its original case.

    Raises:
        InvalidParameter: the function is missing.
    """
    if not isinstance(value, str):
        raise InvalidParameter(refusal, hint=hint)
    if functions is None:
        raise InvalidParameter(
            f"{refusal} custom function '{value}' used in compile params but input object table "
            "missing!",
            hint=f"{hint} A function that an administrator has registered takes object_table too.",
        )
    try:
        functions.digest(value)
    except InvalidParameter as error:
        raise InvalidParameter(f"{refusal} {error.message}", hint=f"{hint} {error.hint}") from error
    return value


def _metrics(key: str, value: object, functions: Functions | None) -> Metrics | None:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_output_metrics(item, functions) for item in value)
    if isinstance(value, dict):
        _check_output_names(key, value)
        return {name: _output_metrics(item, functions) for name, item in value.items()}
    raise invalid_value(
        key, value, "a list such as ['accuracy'], or a list for each output of the model"
    )


def _output_metrics(value: object, functions: Functions | None) -> OutputMetrics:
    """Return an entry of a list of metrics: a metric, or the metrics of one output."""
    if isinstance(value, list):
        return [_metric_name(item, functions) for item in value]
    if value is None:
        return None
    return _metric_name(value, functions)


def _copy_metrics(value: object) -> Metrics:
    """Return checked metrics in the user's spelling."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return tuple(value)
    return ()


def _metric_name(value: object, functions: Functions | None) -> str:
    if isinstance(value, str) and (name := find_metric(value)):
        return name
    refusal = f"Metric {value} is not supported."
    return _custom(value, functions, refusal, near_matches(str(value), METRICS))


def _loss_weights(value: object) -> LossWeights:
    if value is None:
        return None
    if isinstance(value, list):
        return [_weight(item, value) for item in value]
    if isinstance(value, dict):
        _check_output_names("loss_weights", value)
        return {name: _weight(item, value) for name, item in value.items()}
    raise invalid_value("loss_weights", value, "a list, or a dict by output name, of numbers")


def _check_output_names(key: str, value: Mapping[object, object]) -> None:
    if not all(isinstance(name, str) for name in value):
        raise invalid_value(key, value, "the names of the model's outputs as keys")


def _weight(item: object, value: object) -> float:
    number = to_finite_number(item)
    if number is None:
        raise invalid_value("loss_weights", value, "numbers")
    return number
