"""Optimizers, losses and metrics from plain JSON: class names and numbers, nothing executable.

Losses and metrics may also be functions that an administrator registered: see `custom_functions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import keras

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models.keras_model import call_keras
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs import custom_functions
from cerebro_trainer.programs.cosine_cycles import CosineCycles
from cerebro_trainer.wire.fields import is_number

EXCLUDED_OPTIMIZERS = frozenset(
    {"Optimizer", "LossScaleOptimizer", "MultiOptimizer", "OptimizerMap", "ScheduleFreeAdamW"}
)
"""Wrappers, and one that needs a last step at the end of training; hopping has many ends."""
EXCLUDED_METRICS = frozenset({"mean", "sum", "metric", "mean_metric_wrapper"})
"""Metrics of values and weights instead of targets and predictions."""
CustomFunctions: TypeAlias = Mapping[str, Any]
"""Functions and classes by the names of their sources."""
ADAPTIVE_NAMES = ("accuracy", "acc", "crossentropy", "ce")
"""Names that Keras resolves by the shapes of targets and predictions."""


@dataclass(frozen=True)
class CompileArguments:
    """Arguments of `Model.compile`; lists have one entry per output."""

    optimizer: keras.optimizers.Optimizer
    losses: list[Any]
    metrics: list[list[Any]]
    weighted_metrics: list[list[Any]]
    loss_weights: Any
    takes_indices: tuple[bool, ...]  # true for an output whose loss takes class indices


def make_compile_arguments(spec: ProgramSpec, output_names: Sequence[str]) -> CompileArguments:
    """Return a spec's compile parameters, for a model with these outputs.

    Raises:
        ConfigError: a parameter is unknown or does not fit the outputs.
    """
    params = spec.compile
    loss_names = _list_per_output(params.get("loss"), output_names, "loss")
    if not any(loss_names):
        raise ConfigError("no loss is given")
    custom = custom_functions.execute_sources(spec.sources)
    takes_indices = tuple(
        _takes_indices(keras.losses.get, name, "loss", custom) for name in loss_names
    )
    one_hot = [target.classes > 0 for target in spec.targets]
    if len(one_hot) != len(loss_names):
        raise ConfigError(
            f"the model has {count_nouns(len(loss_names), 'output')}, but there are "
            f"{count_nouns(len(one_hot), 'dependent column')}",
            sqlstate="42804",
        )
    losses = [
        _make_loss(name, is_sparse and is_one_hot, custom)
        for name, is_sparse, is_one_hot in zip(loss_names, takes_indices, one_hot, strict=True)
    ]
    return CompileArguments(
        optimizer=_make_optimizer(params.get("optimizer")),
        losses=losses,
        metrics=_make_metrics(params.get("metrics"), output_names, one_hot, custom),
        weighted_metrics=_make_metrics(
            params.get("weighted_metrics"), output_names, one_hot, custom
        ),
        loss_weights=_read_loss_weights(params.get("loss_weights"), output_names),
        takes_indices=takes_indices,
    )


class LossOnIndices(keras.losses.Loss):  # type: ignore[misc]
    """A loss that takes class indices, applied to one-hot targets."""

    def __init__(self, inner: Callable[..., Any], name: str) -> None:
        super().__init__(name=name)
        self._inner = inner.call if isinstance(inner, keras.losses.Loss) else inner

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the losses by example, of targets of shape (rows, ..., classes)."""
        return self._inner(keras.ops.argmax(y_true, axis=-1), y_pred)


class MetricOnIndices(keras.metrics.Metric):  # type: ignore[misc]
    """A metric that takes class indices, applied to one-hot targets.

    Its variables are those of the inner metric.
    """

    def __init__(self, inner: keras.metrics.Metric, name: str) -> None:
        super().__init__(name=name)
        self.inner = inner

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch with targets of shape (rows, ..., classes)."""
        self.inner.update_state(keras.ops.argmax(y_true, axis=-1), y_pred, sample_weight)

    def result(self) -> Any:
        """Return the inner metric's result."""
        return self.inner.result()


def _make_optimizer(spec: object) -> keras.optimizers.Optimizer:
    if not isinstance(spec, dict) or not isinstance(spec.get("config", {}), dict):
        raise ConfigError(f'the optimizer must be {{"class_name", "config"}}, received {spec!r}')
    classes = _find_classes(keras.optimizers, keras.optimizers.Optimizer, EXCLUDED_OPTIMIZERS)
    name = str(spec.get("class_name"))
    if name.lower() not in classes:
        raise ConfigError(f"optimizer {name} is unknown; known are {_join_names(classes)}")
    config = {
        key: _make_hyperparameter(key, value) for key, value in (spec.get("config") or {}).items()
    }
    if config.get("use_ema") and not config.get("ema_overwrite_frequency"):
        raise ConfigError(
            "use_ema needs ema_overwrite_frequency: a visit is not the end of training, when Keras "
            "would overwrite the weights by their average",
            sqlstate="0A000",
        )
    return call_keras(lambda: classes[name.lower()](**config))


def _make_hyperparameter(key: str, value: object) -> Any:
    if key == "learning_rate" and isinstance(value, dict):
        return _make_schedule(value)
    if isinstance(value, dict):
        raise ConfigError(f"optimizer argument {key} must be a plain value, received {value!r}")
    if key == "learning_rate" and isinstance(value, int):
        return float(value)
    return value


def _make_schedule(spec: Mapping[str, Any]) -> Any:
    """Return a learning rate schedule from its {"class_name", "config"}."""
    schedules = _find_classes(
        keras.optimizers.schedules,
        keras.optimizers.schedules.LearningRateSchedule,
        frozenset({"LearningRateSchedule"}),
    )
    schedules[CosineCycles.__name__.lower()] = CosineCycles
    cls = schedules.get(str(spec.get("class_name")).lower())
    if cls is None:
        raise ConfigError(
            f"learning rate schedule {spec.get('class_name')!r} is unknown; known are "
            f"{_join_names(schedules)}"
        )
    return call_keras(lambda: cls(**spec.get("config", {})))


def _find_classes(module: Any, base: type, excluded: frozenset[str]) -> dict[str, Any]:
    """Return the subclasses in a module, by name in lower case."""
    return {
        name.lower(): cls
        for name, cls in vars(module).items()
        if inspect.isclass(cls) and issubclass(cls, base) and name not in excluded
    }


def _join_names(classes: Mapping[str, Any]) -> str:
    return ", ".join(sorted(cls.__name__ for cls in classes.values()))


def _list_per_output(value: object, names: Sequence[str], parameter: str) -> list[Any]:
    """Return one entry per output.

    Args:
        value: one entry for all outputs, a list by position, or an object by output name.
        parameter: its name, for error messages.
    """
    if isinstance(value, Mapping):
        unknown = set(value) - set(names)
        if unknown:
            raise ConfigError(
                f"{parameter} names outputs {sorted(unknown)}, but the model's outputs are "
                f"{list(names)}"
            )
        return [value.get(name) for name in names]
    if isinstance(value, list):
        if len(value) != len(names):
            raise ConfigError(
                f"{parameter} has {count_nouns(len(value), 'entry')}, but the model has "
                f"{count_nouns(len(names), 'output')} {list(names)}"
            )
        return list(value)
    return [value] * len(names)


def _make_metrics(
    value: object, names: Sequence[str], one_hot: Sequence[bool], custom: CustomFunctions
) -> list[list[Any]]:
    """Return metrics by output.

    A list belongs to a single output as a whole; one metric in a list belongs to every output.
    """
    if isinstance(value, list) and len(names) == 1:
        value = [[name for entry in value for name in _to_list(entry)]]
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value * len(names)
    entries = _list_per_output(value or None, names, "metrics")
    return [
        [_make_metric(name, is_one_hot, custom) for name in _to_list(entry or [])]
        for entry, is_one_hot in zip(entries, one_hot, strict=True)
    ]


def _to_list(entry: Any) -> list[Any]:
    return entry if isinstance(entry, list) else [entry]


def _make_metric(name: object, one_hot: bool, custom: CustomFunctions) -> Any:
    if str(name).lower() in EXCLUDED_METRICS and name not in custom:
        raise ConfigError(f"{name!r} is no metric of targets and predictions")
    if _takes_indices(keras.metrics.get, name, "metric", custom) and one_hot:
        return MetricOnIndices(keras.metrics.get(name), str(name))
    if name in custom:
        return custom_functions.make_metric(str(name), custom[str(name)])
    return name


def _make_loss(name: Any, on_indices: bool, custom: CustomFunctions) -> Any:
    if on_indices:
        return LossOnIndices(keras.losses.get(name), name)
    if name in custom:
        return custom_functions.make_loss(name, custom[name])
    return name


def _takes_indices(
    get: Callable[[Any], Any], name: object, kind: str, custom: CustomFunctions
) -> bool:
    """Return whether the named loss or metric takes class indices.

    Raises:
        ConfigError: Keras does not know the name.
    """
    if name is None or str(name).lower() in ADAPTIVE_NAMES:
        return False
    if not isinstance(name, str):
        raise ConfigError(f"a {kind} is given by its Keras name, received {name!r}")
    if name in custom:
        return False
    try:
        function = get(name)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{kind} {name!r} is unknown to Keras, or needs arguments") from error
    keras_name = getattr(function, "__name__", getattr(function, "name", ""))
    return str(keras_name).startswith("sparse_")


def _read_loss_weights(value: object, names: Sequence[str]) -> Any:
    if value is None:
        return None
    weights = _list_per_output(value, names, "loss_weights")
    if not all(map(is_number, weights)):
        raise ConfigError(f"loss_weights must be one number per output, received {value!r}")
    return [float(weight) for weight in weights]
