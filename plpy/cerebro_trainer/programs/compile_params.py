"""Optimizers, losses and metrics from plain JSON: class names and numbers, nothing that could run.

Losses and metrics may also be functions that an administrator registered (see `custom_functions`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models.keras_model import guarded
from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs import custom_functions
from cerebro_trainer.programs.cosine_cycles import CosineCycles

NOT_OFFERED = frozenset(
    {"Optimizer", "LossScaleOptimizer", "MultiOptimizer", "OptimizerMap", "ScheduleFreeAdamW"}
)
"""Wrappers, and one whose weights need a last step at the end of training, which hopping has many
of.
"""
NOT_METRICS = frozenset({"mean", "sum", "metric", "mean_metric_wrapper"})
"""They take values and weights, not targets and predictions."""


@dataclass(frozen=True)
class Compiled:
    """Arguments of `Model.compile`, by output; `indices[i]` is true if output i's loss wants class
    indices.
    """

    optimizer: keras.optimizers.Optimizer
    losses: list[Any]
    metrics: list[list[Any]]
    weighted_metrics: list[list[Any]]
    loss_weights: Any
    indices: tuple[bool, ...]


def compiled(spec: ProgramSpec, output_names: Sequence[str]) -> Compiled:
    """A spec's compile parameters, for a model with these outputs; ConfigError names what is
    unknown.
    """
    arguments = spec.compile
    names = _per_output(arguments.get("loss"), output_names, "loss")
    if not any(names):
        raise ConfigError("no loss is given")
    own = custom_functions.defined(spec.sources)
    indices = tuple(_is_sparse(keras.losses.get, name, "loss", own) for name in names)
    one_hot = [target.classes > 0 for target in spec.targets]
    if len(one_hot) != len(names):
        raise ConfigError(
            f"the model has {len(names)} outputs, but there are {len(one_hot)} dependent columns",
            sqlstate="42804",
        )
    losses = [
        LossOnIndices(keras.losses.get(name), name) if sparse and encoded else _loss(name, own)
        for name, sparse, encoded in zip(names, indices, one_hot, strict=True)
    ]
    return Compiled(
        _optimizer(arguments.get("optimizer")),
        losses,
        _metrics(arguments.get("metrics"), output_names, one_hot, own),
        _metrics(arguments.get("weighted_metrics"), output_names, one_hot, own),
        _loss_weights(arguments.get("loss_weights"), output_names),
        indices,
    )


class LossOnIndices(keras.losses.Loss):  # type: ignore[misc]
    """A loss that wants class indices, fed with one-hot targets."""

    def __init__(self, inner: Callable[..., Any], name: str) -> None:
        super().__init__(name=name)
        self._inner = inner.call if isinstance(inner, keras.losses.Loss) else inner

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Per-example losses of targets of shape (rows, ..., classes)."""
        return self._inner(keras.ops.argmax(y_true, axis=-1), y_pred)


class MetricOnIndices(keras.metrics.Metric):  # type: ignore[misc]
    """A metric that wants class indices, fed with one-hot targets; its variables are the inner
    metric's.
    """

    def __init__(self, inner: keras.metrics.Metric, name: str) -> None:
        super().__init__(name=name)
        self.inner = inner

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch with targets of shape (rows, ..., classes)."""
        self.inner.update_state(keras.ops.argmax(y_true, axis=-1), y_pred, sample_weight)

    def result(self) -> Any:
        """The inner metric's result."""
        return self.inner.result()


def _optimizer(spec: object) -> keras.optimizers.Optimizer:
    if not isinstance(spec, dict) or not isinstance(spec.get("config", {}), dict):
        raise ConfigError(f'the optimizer must be {{"class_name", "config"}}, received {spec!r}')
    offered = _classes(keras.optimizers, keras.optimizers.Optimizer, NOT_OFFERED)
    name = str(spec.get("class_name"))
    if name.lower() not in offered:
        raise ConfigError(
            f"optimizer {name} is unknown; known are "
            f"{', '.join(sorted(cls.__name__ for cls in offered.values()))}"
        )
    config = {key: _hyperparameter(key, value) for key, value in (spec.get("config") or {}).items()}
    if config.get("use_ema") and not config.get("ema_overwrite_frequency"):
        raise ConfigError(
            "use_ema needs ema_overwrite_frequency: a visit is not the end of training, when Keras "
            "would overwrite the weights by their average",
            sqlstate="0A000",
        )
    return guarded(lambda: offered[name.lower()](**config))


def _hyperparameter(key: str, value: object) -> Any:
    if key == "learning_rate" and isinstance(value, dict):
        schedules = _classes(
            keras.optimizers.schedules,
            keras.optimizers.schedules.LearningRateSchedule,
            frozenset({"LearningRateSchedule"}),
        ) | {CosineCycles.__name__.lower(): CosineCycles}
        cls = schedules.get(str(value.get("class_name")).lower())
        if cls is None:
            raise ConfigError(
                f"learning rate schedule {value.get('class_name')!r} is unknown; known are "
                f"{', '.join(sorted(known.__name__ for known in schedules.values()))}"
            )
        return guarded(lambda: cls(**value.get("config", {})))
    if isinstance(value, dict):
        raise ConfigError(f"optimizer argument {key} must be a plain value, received {value!r}")
    return float(value) if key == "learning_rate" and isinstance(value, int) else value


def _classes(module: Any, base: type, without: frozenset[str]) -> dict[str, Any]:
    return {
        name.lower(): cls
        for name, cls in vars(module).items()
        if inspect.isclass(cls) and issubclass(cls, base) and name not in without
    }


def _per_output(value: object, names: Sequence[str], what: str) -> list[Any]:
    """One entry per output, from one entry for all, a list by position, or an object by output
    name.
    """
    if isinstance(value, Mapping):
        unknown = set(value) - set(names)
        if unknown:
            raise ConfigError(
                f"{what} names outputs {sorted(unknown)}, but the model's outputs are {list(names)}"
            )
        return [value.get(name) for name in names]
    if isinstance(value, list):
        if len(value) != len(names):
            raise ConfigError(
                f"{what} has {len(value)} entries, but the model has {len(names)} outputs "
                f"{list(names)}"
            )
        return list(value)
    return [value] * len(names)


def _metrics(
    value: object, names: Sequence[str], one_hot: Sequence[bool], own: Mapping[str, Any]
) -> list[list[Any]]:
    """Metric names by output. A list is for a single output as a whole; a metric alone in it is for
    every output.
    """
    if isinstance(value, list) and len(names) == 1:
        value = [
            [name for entry in value for name in (entry if isinstance(entry, list) else [entry])]
        ]
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value * len(names)
    lists = [
        entry if isinstance(entry, list) else [entry] if entry else []
        for entry in _per_output(value or None, names, "metrics")
    ]
    return [
        [_metric(name, encoded, own) for name in entry]
        for entry, encoded in zip(lists, one_hot, strict=True)
    ]


def _metric(name: object, one_hot: bool, own: Mapping[str, Any]) -> Any:
    if str(name).lower() in NOT_METRICS and name not in own:
        raise ConfigError(f"{name!r} is no metric of targets and predictions")
    if _is_sparse(keras.metrics.get, name, "metric", own) and one_hot:
        return MetricOnIndices(keras.metrics.get(name), str(name))
    return custom_functions.as_metric(str(name), own[str(name)]) if name in own else name


def _loss(name: Any, own: Mapping[str, Any]) -> Any:
    return custom_functions.as_loss(name, own[name]) if name in own else name


def _is_sparse(get: Callable[[Any], Any], name: object, what: str, own: Mapping[str, Any]) -> bool:
    """Whether the named loss or metric wants class indices; ConfigError where there is none of this
    name.
    """
    if name is None or str(name).lower() in ("accuracy", "acc", "crossentropy", "ce"):
        return False
    if not isinstance(name, str):
        raise ConfigError(f"a {what} is given by its Keras name, received {name!r}")
    if name in own:
        return False
    try:
        found = get(name)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{what} {name!r} is unknown to Keras, or needs arguments") from error
    return str(getattr(found, "__name__", getattr(found, "name", ""))).startswith("sparse_")


def _loss_weights(value: object, names: Sequence[str]) -> Any:
    if value is None:
        return None
    weights = _per_output(value, names, "loss_weights")
    if not all(
        isinstance(weight, (int, float)) and not isinstance(weight, bool) for weight in weights
    ):
        raise ConfigError(f"loss_weights must be one number per output, received {value!r}")
    return [float(weight) for weight in weights]
