"""Compile parameter strings: what one configuration asks for, checked before anything is trained.

The strings are MADlib's, `key=value` pairs in any order. Everything is checked here that can be
without Keras, so that a run does not start only to find a misspelt loss. `fit_params` reads those
of fit. What Keras does not know is looked for among an administrator's functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from cerebro_plpy.configs.params.literals import call, finite_number, invalid_value, keywords
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
# A list of names, of an entry for each output of the model, or a dict by the names of outputs: see
# `per_output`.
OutputMetrics = Union[str, list[str], None]
Metrics = Union[tuple[OutputMetrics, ...], dict[str, OutputMetrics]]


@dataclass(frozen=True)
class CompileParams:
    """What a model is compiled with, in the names of Keras 3.

    `custom` are the functions that no name of Keras stands for. `loss_given` and `metrics_given`
    keep the user's spelling; `notices` tells of settings left out.
    """

    optimizer: OptimizerSpec
    loss: Loss
    metrics: Metrics = ()
    loss_weights: LossWeights = None
    weighted_metrics: Metrics | None = None
    custom: Functions | None = None
    loss_given: str = field(default="", compare=False)
    metrics_given: Metrics = field(default=(), compare=False)
    notices: tuple[str, ...] = field(default=(), compare=False)

    @property
    def names(self) -> frozenset[str]:
        """Names of functions that Keras does not know."""
        losses = frozenset(name for name in _every(self.loss) if find_loss(name) is None)
        return losses.union(
            n for n in (*_every(self.metrics), *_every(self.weighted_metrics)) if not find_metric(n)
        )

    def to_json(self) -> dict[str, object]:
        """As the trainer wants it; a configuration without custom functions says nothing of any."""
        custom = {} if self.custom is None else {"objects": self.custom.to_json()}
        return {
            **custom,
            "optimizer": self.optimizer.to_json(),
            "loss": self.loss,
            "metrics": _json(self.metrics),
            "loss_weights": self.loss_weights,
            "weighted_metrics": None
            if self.weighted_metrics is None
            else _json(self.weighted_metrics),
        }


def _json(metrics: Metrics) -> object:
    return metrics if isinstance(metrics, dict) else list(metrics)


def _every(value: object) -> Iterator[str]:
    """All names in losses or metrics, in whatever form."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _every(item)


def parse_compile_params(text: str, functions: Functions | None = None) -> CompileParams:
    """The compile parameters written as `key=value, …`; `functions` are those of the object table,
    if there is one.

    >>> parse_compile_params("loss='mse', optimizer='SGD(lr=0.1)'").to_json()["optimizer"]
    {'class_name': 'SGD', 'config': {'learning_rate': 0.1}}

    Raises InvalidText for broken syntax, InvalidParameter for unknown or bad settings and
    FeatureNotSupported for those that are understood but not available.
    """
    given = keywords(text, UNQUOTED)
    refuse_unknown(given, COMPILE_KEYS)
    for key in ("optimizer", "loss"):
        if key not in given:
            raise InvalidParameter(
                f"{key} is a required parameter for compile", hint=f"Add {key}='...'."
            )
    _refuse_sample_weights(given.get("sample_weight_mode"))
    optimizer = parse_optimizer(given["optimizer"])
    loss = given["loss"]
    metrics = given.get("metrics")
    weighted = given.get("weighted_metrics")
    parsed = CompileParams(
        optimizer=optimizer,
        loss=_loss(loss, functions),
        metrics=_metrics("metrics", metrics, functions),
        loss_weights=_loss_weights(given.get("loss_weights")),
        weighted_metrics=None
        if weighted is None
        else _metrics("weighted_metrics", weighted, functions),
        loss_given=loss if isinstance(loss, str) else repr(loss),
        metrics_given=_as_given(metrics),
        notices=optimizer.notices,
    )
    return (
        replace(parsed, custom=functions.only(parsed.names))
        if functions and parsed.names
        else parsed
    )


def canonical(text: str | None) -> str:
    """One spelling for all parameter texts that differ only in white space and the order of keys.

    >>> canonical("loss='mse', optimizer='adam(beta_1=0.5, lr=0.10)'")
    "loss='mse',optimizer='Adam(beta_1=0.5,lr=0.1)'"
    """
    given = keywords(text or "", UNQUOTED)
    return ",".join(f"{key}={_canonical_value(key, given[key])}" for key in sorted(given))


def _canonical_value(key: str, value: object) -> str:
    if key == "optimizer" and isinstance(value, str):
        name, arguments = call(value)
        ordered = ",".join(f"{key}={_ordered(arguments[key])}" for key in sorted(arguments))
        return repr(f"{find_optimizer(name) or name}({ordered})")
    return _ordered(value)


def _ordered(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{" + ",".join(sorted(f"{key!r}:{_ordered(item)}" for key, item in value.items())) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(_ordered(item) for item in value) + "]"
    return repr(value)


def refuse_unknown(given: Iterable[str], accepted: tuple[str, ...]) -> None:
    """Raises InvalidParameter for the first key that is not accepted."""
    for key in given:
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
        raise invalid_value("sample_weight_mode", repr(mode), "None")


def _loss(value: object, functions: Functions | None) -> Loss:
    if isinstance(value, str):
        return _loss_name(value, functions)
    if isinstance(value, list) and any(item is not None for item in value):
        return [None if item is None else _loss_name(item, functions) for item in value]
    if isinstance(value, dict) and value:
        return {
            _output("loss", key, value): _loss_name(item, functions) for key, item in value.items()
        }
    raise invalid_value(
        "loss", repr(value), "a name such as 'mse', or one name per output of the model"
    )


def _loss_name(value: object, functions: Functions | None) -> str:
    name = find_loss(value) if isinstance(value, str) else None
    return name or _custom(
        value,
        functions,
        f"Loss function {value} is not supported.",
        near_matches(str(value), LOSSES),
    )


def _custom(value: object, functions: Functions | None, refusal: str, hint: str) -> str:
    """The name of a custom function, its case kept; raises where there is none of it."""
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


def _metrics(key: str, value: object, functions: Functions | None) -> Metrics:
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(_output_metrics(item, functions) for item in value)
    if isinstance(value, dict):
        return {
            _output(key, name, value): _output_metrics(item, functions)
            for name, item in value.items()
        }
    raise invalid_value(
        key, repr(value), "a list such as ['accuracy'], or a list for each output of the model"
    )


def _output_metrics(value: object, functions: Functions | None) -> OutputMetrics:
    """An entry of a list of metrics: a metric, or those of one output."""
    if isinstance(value, list):
        return [_metric_name(item, functions) for item in value]
    return None if value is None else _metric_name(value, functions)


def _as_given(value: object) -> Metrics:
    """Metrics that were found to be such, in the user's spelling."""
    return value if isinstance(value, dict) else tuple(value) if isinstance(value, list) else ()


def _metric_name(value: object, functions: Functions | None) -> str:
    name = find_metric(value) if isinstance(value, str) else None
    return name or _custom(
        value, functions, f"Metric {value} is not supported.", near_matches(str(value), METRICS)
    )


def _loss_weights(value: object) -> LossWeights:
    if value is None:
        return None
    if isinstance(value, list):
        return [_weight(item, value) for item in value]
    if isinstance(value, dict):
        return {
            _output("loss_weights", key, value): _weight(item, value) for key, item in value.items()
        }
    raise invalid_value("loss_weights", repr(value), "a list, or a dict by output name, of numbers")


def _output(key: str, name: object, value: object) -> str:
    if not isinstance(name, str):
        raise invalid_value(key, repr(value), "the names of the model's outputs as keys")
    return name


def _weight(item: object, value: object) -> float:
    number = finite_number(item)
    if number is None:
        raise invalid_value("loss_weights", repr(value), "numbers")
    return number
