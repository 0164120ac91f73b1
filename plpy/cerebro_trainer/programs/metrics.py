"""The compile metrics of a program, as sums that add up over buffers and segments.

Which metric `accuracy` is, and how metrics belong to outputs, is left to Keras: it builds them when
it first sees targets and predictions, so it is shown a few made-up ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np

from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.models.keras_model import guarded
from cerebro_trainer.programs.io_spec import Output, Shape

PROBE_ROWS = 4

Update: TypeAlias = Callable[[Any, Any], Any]
"""Takes targets and predictions, and changes variables."""


class CompiledMetrics:
    """Keras' metrics of a compiled model, built; those that do not add up are refused by name."""

    def __init__(
        self,
        model: keras.Model,
        outputs: Sequence[Output],
        compiled: Callable[[Update, Sequence[Any]], Update],
    ) -> None:
        """`compiled` makes one call of the framework of a function that reads the model and changes
        variables.
        """
        self._keras = next(metric for metric in model.metrics if metric.name == "compile_metrics")
        probes = [_probe(outputs, seed) for seed in (1, 2)]
        guarded(lambda: self._keras.build(*probes[0]))

        def update(targets: Any, predictions: Any) -> Any:
            self.update(targets, predictions)
            return model.compute_loss(None, targets, predictions, training=False)

        # Most make further variables when they see a batch, as does the loss of several outputs:
        # not within one call.
        ready = len(outputs) == 1 and all(
            isinstance(metric, keras.metrics.Mean) for metric in self._keras.metrics
        )
        once = compiled(update, self.variables) if ready else update
        parts = guarded(
            lambda: [self._after(once, batches) for batches in (probes[:1], probes[1:], probes)]
        )
        for metric, first, second, both in zip(self._keras.metrics, *parts, strict=True):
            if not np.allclose(np.add(first, second), both, rtol=1e-4, atol=1e-4):
                raise ConfigError(
                    f"metric {metric.name} is not supported: its state over one partition cannot "
                    "be added to that over another",
                    sqlstate="0A000",
                )
            _mean(metric)
        self.reset()
        self.no_sums = self.sums()

    @property
    def variables(self) -> list[Any]:
        """The variables that `update` changes."""
        return list(self._keras.variables)

    def update(self, targets: Any, predictions: Any) -> None:
        """Add a batch, in the structure of the model's outputs; may be part of a graph."""
        self._keras.update_state(targets, predictions)

    def reset(self) -> None:
        """Forget all batches; may be part of a graph."""
        self._keras.reset_state()

    def sums(self) -> list[list[float]]:
        """Each metric's variables as they now are, flattened, in compile order."""
        return flattened(metric.variables for metric in self._keras.metrics)

    def tensors(self) -> list[list[Any]]:
        """The same as part of a graph, to be `flattened` when it has run."""
        return [
            list(map(keras.ops.convert_to_tensor, metric.variables))
            for metric in self._keras.metrics
        ]

    def results(self, sums: Sequence[Sequence[float]]) -> list[float]:
        """The metrics' values from such sums."""
        metrics = self._keras.metrics
        if len(sums) != len(metrics):
            raise RequestError(f"expected sums of {len(metrics)} metrics, received {len(sums)}")
        for metric, values in zip(metrics, sums, strict=True):
            _set(metric, values)
        return [_mean(metric) for metric in metrics]

    def _after(self, update: Update, batches: Sequence[tuple[Any, Any]]) -> list[list[float]]:
        self.reset()
        for targets, predictions in batches:
            update(targets, predictions)
        return self.sums()


def flattened(metrics: Iterable[Iterable[Any]]) -> list[list[float]]:
    """The numbers in the arrays of each metric."""
    numbers = keras.ops.convert_to_numpy
    return [
        [float(number) for array in arrays for number in np.ravel(numbers(array))]
        for arrays in metrics
    ]


def packed(tensors: Sequence[Any]) -> Any:
    """Tensors in the structure of a model's inputs or outputs: one alone, or a list."""
    return tensors[0] if len(tensors) == 1 else list(tensors)


def _probe(outputs: Sequence[Output], seed: int) -> tuple[Any, Any]:
    """A batch of targets and predictions of the outputs' shapes."""
    generator = np.random.default_rng(seed)
    predictions = [generator.uniform(0.1, 0.9, _batch(output.shape)) for output in outputs]
    targets = [
        np.eye(output.classes)[np.arange(PROBE_ROWS) % output.classes]
        if output.classes and not output.binary
        else generator.integers(0, 2, _batch(output.target_shape))
        for output in outputs
    ]
    return _tensors(targets), _tensors(predictions)


def _tensors(arrays: Sequence[Any]) -> Any:
    return packed([keras.ops.convert_to_tensor(array.astype("float32")) for array in arrays])


def _batch(shape: Shape) -> tuple[int, ...]:
    return (PROBE_ROWS, *(size or 1 for size in shape))


def _set(metric: Any, values: Sequence[float]) -> None:
    sizes = [int(np.prod(variable.shape)) for variable in metric.variables]
    if len(values) != sum(sizes):
        raise RequestError(
            f"the sums of metric {metric.name} are {sum(sizes)} numbers, received {len(values)}"
        )
    offset = 0
    for variable, size in zip(metric.variables, sizes, strict=True):
        variable.assign(
            np.reshape(values[offset : offset + size], variable.shape).astype(variable.dtype)
        )
        offset += size


def _mean(metric: Any) -> float:
    """The metric's value; where it gives a number for each class, as F1Score does, their mean: the
    macro average.
    """
    result = keras.ops.convert_to_numpy(metric.result())
    if not result.size:
        raise ConfigError(f"metric {metric.name} gives no number", sqlstate="0A000")
    return float(np.mean(result))
