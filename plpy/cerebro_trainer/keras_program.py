"""What programs share, whatever framework runs Keras: variables in order, fresh states, loss and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from cerebro_trainer import models
from cerebro_trainer.compiling import compiled
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.fitting import Interface, Output
from cerebro_trainer.programs import Array, Program, Sums
from cerebro_trainer.specs import ProgramSpec
from cerebro_trainer.state import Layout

EVALUATION_BYTES = 16 << 20
EVALUATION_ROWS = 256
"""Evaluation runs in batches of at most so many rows and input bytes, whatever the training batch size."""


class KerasProgram(Program):
    """A program around a compiled Keras model; subclasses add the loops of their framework."""

    def __init__(self, spec: ProgramSpec, framework: str) -> None:
        self.spec = spec
        self._node = models.prepare(spec.architecture)
        self.model = models.build(self._node)
        parts = compiled(spec, models.output_names(self.model))
        outputs = tuple(
            Output(tuple(output.shape[1:]), target.classes, indices)
            for output, target, indices in zip(self.model.outputs, spec.targets, parts.indices, strict=True)
        )
        self.interface = Interface(tuple(tuple(tensor.shape[1:]) for tensor in self.model.inputs), outputs)
        models.guarded(
            lambda: self.model.compile(
                optimizer=parts.optimizer,
                loss=parts.losses,
                metrics=parts.metrics,
                loss_weights=parts.loss_weights,
                weighted_metrics=parts.weighted_metrics,
                jit_compile=False,
            )
        )
        if not self.model.trainable_variables:
            raise ConfigError("the model has no trainable weights")
        self.optimizer: Any = self.model.optimizer
        self.optimizer.build(self.model.trainable_variables)
        self._fresh_optimizer = [np.asarray(variable) for variable in self.optimizer.variables]
        self.compile_metrics = self._built_metrics()
        self.layout = self._layout(framework)

    @property
    def variables(self) -> list[Any]:
        """All variables that make up a state, in its order."""
        return [*self.model.variables, *self.optimizer.variables]

    @property
    def step(self) -> int:
        """Optimizer steps taken by the state now held."""
        return int(np.asarray(self.optimizer.iterations))

    def read(self) -> list[Array]:
        """The values of all variables."""
        return [np.asarray(variable) for variable in self.variables]

    def write(self, values: Sequence[Array]) -> None:
        """Set all variables; shapes and dtypes are those of `layout`."""
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)

    def initial(self, seed: int) -> list[Array]:
        """A fresh state: Keras' initial weights under `seed`, and an optimizer that has done no step."""
        model = models.build_seeded(self._node, seed)
        return [*(np.asarray(variable) for variable in model.variables), *self._fresh_optimizer]

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate where it is a plain number; schedules are part of the program."""
        self.optimizer.learning_rate = rate

    def results(self, sums: Sums) -> dict[str, object]:
        """The loss and the compile metrics, in their order, from (added) sums of `evaluate`."""
        metrics = self.compile_metrics.metrics
        if len(sums) != 1 + len(metrics):
            raise ConfigError(
                f"expected sums of the loss and {len(metrics)} metrics, received {len(sums)} lists"
            )
        for metric, values in zip(metrics, sums[1:], strict=True):
            _set_sums(metric, values)
        total, rows = sums[0]
        return {
            "loss": total / rows if rows else None,
            "metrics": [_scalar(metric) for metric in metrics] if rows else [None] * len(metrics),
        }

    def no_sums(self) -> Sums:
        """What `evaluate` gives for no rows: zeros."""
        self.compile_metrics.reset_state()
        return [[0.0, 0.0], *self.metric_sums()]

    def evaluation_batch(self, inputs: Sequence[Array]) -> int:
        """Rows per batch of evaluation and prediction; depends on the shape of a row alone."""
        row_bytes = sum(4 * int(np.prod(array.shape[1:], dtype=np.int64)) for array in inputs)
        return max(1, min(EVALUATION_ROWS, EVALUATION_BYTES // max(1, row_bytes)))

    def metric_sums(self) -> Sums:
        """Each compile metric's variables as they now are, flattened."""
        return [
            [float(number) for variable in metric.variables for number in np.ravel(np.asarray(variable))]
            for metric in self.compile_metrics.metrics
        ]

    def _built_metrics(self) -> Any:
        """Have Keras build losses and metrics for the shapes they will see, and check that metrics add up."""
        found = next((m for m in self.model.metrics if m.name == "compile_metrics"), None)
        probes = [self._probe(seed) for seed in (1, 2)]
        if found is None:
            raise ConfigError("Keras did not compile the metrics")
        models.guarded(lambda: self.model.compute_loss(None, *probes[0], training=False))
        states = models.guarded(lambda: [_after(found, part) for part in (probes[:1], probes[1:], probes)])
        for metric, first, second, both in zip(found.metrics, *states, strict=True):
            if not np.allclose(np.add(first, second), both, rtol=1e-4, atol=1e-4):
                raise ConfigError(
                    f"metric {metric.name} is not supported: its state over a partition cannot be "
                    "added to that over another",
                    sqlstate="0A000",
                )
            _scalar(metric)
        found.reset_state()
        return found

    def _probe(self, seed: int) -> tuple[Any, Any]:
        """A batch of targets and predictions of the right shapes."""
        generator = np.random.default_rng(seed)
        targets, predictions = [], []
        for output in self.interface.outputs:
            prediction = generator.uniform(0.1, 0.9, (4, *(size or 1 for size in output.shape))).astype(
                np.float32
            )
            shape = (4, *(size or 1 for size in output.target_shape))
            targets.append(
                np.eye(shape[-1], dtype=np.float32)[np.arange(4) % shape[-1]]
                if output.classes and not output.binary
                else np.asarray(generator.integers(0, 2, shape), dtype=np.float32)
            )
            predictions.append(prediction)
        return self.packed([keras.ops.convert_to_tensor(target) for target in targets]), self.packed(
            [keras.ops.convert_to_tensor(prediction) for prediction in predictions]
        )

    def packed(self, tensors: Sequence[Any]) -> Any:
        """Tensors in the structure of the model's outputs: one alone, or a list."""
        return tensors[0] if len(tensors) == 1 else list(tensors)

    def _layout(self, framework: str) -> Layout:
        positions = {id(variable): position for position, variable in enumerate(self.variables)}
        return Layout(
            shapes=tuple(tuple(variable.shape) for variable in self.variables),
            dtypes=tuple(np.asarray(variable).dtype.name for variable in self.variables),
            weights=tuple(positions[id(weight)] for weight in self.model.weights),
            architecture=self.spec.architecture_hash,
            optimizer=type(self.optimizer).__name__,
            framework=framework,
            keras=keras.__version__,
        )



def _after(metrics: Any, batches: Sequence[tuple[Any, Any]]) -> list[list[float]]:
    if metrics.built:
        metrics.reset_state()
    for targets, predictions in batches:
        metrics.update_state(targets, predictions)
    return [
        [float(number) for variable in metric.variables for number in np.ravel(np.asarray(variable))]
        for metric in metrics.metrics
    ]


def _set_sums(metric: Any, values: Sequence[float]) -> None:
    variables, offset = metric.variables, 0
    if len(values) != sum(int(np.prod(variable.shape)) for variable in variables):
        raise ConfigError(f"the sums of metric {metric.name} have {len(values)} numbers, which does not fit")
    for variable in variables:
        size = int(np.prod(variable.shape))
        variable.assign(np.reshape(values[offset : offset + size], variable.shape).astype(variable.dtype))
        offset += size


def _scalar(metric: Any) -> float:
    result = np.asarray(metric.result())
    if result.size != 1:
        raise ConfigError(
            f"metric {metric.name} gives {result.size} numbers, where one is expected",
            sqlstate="0A000",
            hint="Choose a metric with one value, such as accuracy or AUC.",
        )
    return float(result.reshape(()))
