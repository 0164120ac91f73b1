"""The compile metrics of a program, as sums that add up over buffers and segments.

Keras decides which metric `accuracy` means and which output a metric belongs to. It builds its
metrics when it first sees targets and predictions, so it receives a few synthetic batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np

from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.models.keras_model import call_keras, unwrap_single
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs.io_spec import Output, Shape

PROBE_ROWS = 4

Batch: TypeAlias = tuple[Any, Any]
"""Targets and predictions."""
Update: TypeAlias = Callable[[Any, Any], Any]
"""Function of targets and predictions that changes variables."""


class CompiledMetrics:
    """The built metrics of a compiled model.

    Args:
        compile_function: compiles a function into one call of the framework. The function reads
            the model and changes the given variables.

    Raises:
        ConfigError: the sums of a metric do not add up over buffers.
    """

    def __init__(
        self,
        model: keras.Model,
        outputs: Sequence[Output],
        compile_function: Callable[[Update, Sequence[Any]], Update],
    ) -> None:
        self._keras = next(metric for metric in model.metrics if metric.name == "compile_metrics")
        probes = [_make_probe(outputs, seed) for seed in (1, 2)]
        call_keras(self._keras.build, *probes[0])

        def update(targets: Any, predictions: Any) -> Any:
            self.update(targets, predictions)
            return model.compute_loss(None, targets, predictions, training=False)

        # Most metrics, and the loss of several outputs, create further variables on their first
        # batch, which is impossible within a compiled call.
        has_all_variables = len(outputs) == 1 and all(
            isinstance(metric, keras.metrics.Mean) for metric in self._keras.metrics
        )
        add_batch: Update = update
        if has_all_variables:
            add_batch = compile_function(update, self.variables)
        self._check_additivity(add_batch, probes)
        self.reset()
        self.zero_sums = self.read_sums()

    @property
    def variables(self) -> list[Any]:
        """The variables that `update` changes."""
        return list(self._keras.variables)

    def update(self, targets: Any, predictions: Any) -> None:
        """Add a batch, in the structure of the model's outputs; may be part of a graph."""
        self._keras.update_state(targets, predictions)

    def reset(self) -> None:
        """Reset all metrics; may be part of a graph."""
        self._keras.reset_state()

    def read_sums(self) -> list[list[float]]:
        """Return each metric's current variables, flattened, in compile order."""
        return flatten(metric.variables for metric in self._keras.metrics)

    def read_tensors(self) -> list[list[Any]]:
        """Return the same values as part of a graph, to be passed to `flatten` after its run."""
        return [
            list(map(keras.ops.convert_to_tensor, metric.variables))
            for metric in self._keras.metrics
        ]

    def compute_results(self, sums: Sequence[Sequence[float]]) -> list[float]:
        """Return the metrics' values from such sums."""
        metrics = self._keras.metrics
        if len(sums) != len(metrics):
            raise RequestError(
                f"expected sums of {count_nouns(len(metrics), 'metric')}, received {len(sums)}"
            )
        for metric, values in zip(metrics, sums, strict=True):
            _set_variables(metric, values)
        return [_compute_mean(metric) for metric in metrics]

    def _check_additivity(self, update: Update, probes: Sequence[Batch]) -> None:
        """Check that the sums of two batches add up to those of both together."""
        parts = (probes[:1], probes[1:], probes)
        sums = call_keras(lambda: [self._sum_over(update, batches) for batches in parts])
        for metric, first, second, total in zip(self._keras.metrics, *sums, strict=True):
            if not np.allclose(np.add(first, second), total, rtol=1e-4, atol=1e-4):
                raise ConfigError(
                    f"metric {metric.name} is not supported: its state over one partition cannot "
                    "be added to that over another",
                    sqlstate="0A000",
                )
            _compute_mean(metric)  # raises if the metric has no value

    def _sum_over(self, update: Update, batches: Sequence[Batch]) -> list[list[float]]:
        self.reset()
        for targets, predictions in batches:
            update(targets, predictions)
        return self.read_sums()


def flatten(metrics: Iterable[Iterable[Any]]) -> list[list[float]]:
    """Return the numbers in the arrays of each metric."""
    to_numpy = keras.ops.convert_to_numpy
    return [
        [float(number) for array in arrays for number in np.ravel(to_numpy(array))]
        for arrays in metrics
    ]


def _make_probe(outputs: Sequence[Output], seed: int) -> Batch:
    """Return a batch of targets and predictions of the outputs' shapes."""
    generator = np.random.default_rng(seed)
    predictions = [generator.uniform(0.1, 0.9, _batch_shape(output.shape)) for output in outputs]
    targets: list[Any] = []
    for output in outputs:
        if output.classes and not output.is_binary:
            targets.append(np.eye(output.classes)[np.arange(PROBE_ROWS) % output.classes])
        else:
            targets.append(generator.integers(0, 2, _batch_shape(output.target_shape)))
    return _to_tensors(targets), _to_tensors(predictions)


def _to_tensors(arrays: Sequence[Any]) -> Any:
    return unwrap_single([keras.ops.convert_to_tensor(array.astype("float32")) for array in arrays])


def _batch_shape(shape: Shape) -> tuple[int, ...]:
    return (PROBE_ROWS, *(size or 1 for size in shape))


def _set_variables(metric: Any, values: Sequence[float]) -> None:
    sizes = [int(np.prod(variable.shape)) for variable in metric.variables]
    if len(values) != sum(sizes):
        raise RequestError(
            f"the sums of metric {metric.name} are {count_nouns(sum(sizes), 'number')}, received "
            f"{len(values)}"
        )
    offset = 0
    for variable, size in zip(metric.variables, sizes, strict=True):
        array = np.reshape(values[offset : offset + size], variable.shape)
        variable.assign(array.astype(variable.dtype))
        offset += size


def _compute_mean(metric: Any) -> float:
    """Return the metric's value; for one value per class, as of F1Score, the macro average."""
    result = keras.ops.convert_to_numpy(metric.result())
    if not result.size:
        raise ConfigError(f"metric {metric.name} gives no number", sqlstate="0A000")
    return float(np.mean(result))
