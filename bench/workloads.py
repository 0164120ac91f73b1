"""The workloads: networks, data and configurations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from models import Json, dense, layer, sequential

from bench.examples import (
    Examples,
    draw_flowers,
    draw_images,
    draw_numeric,
    draw_series,
    draw_sparse,
)

SMALL = "small"
REPORT = "report"
DATA_SEED = 20
WEIGHT_SEED = 7
RUN_SEED = 11


@dataclass(frozen=True, kw_only=True)
class Config:
    """One training configuration."""

    model: int  # the number of an architecture, from 1
    optimizer: str
    learning_rate: float
    batch_size: int

    @property
    def compile_params(self) -> str:
        """The text that MADlib expects."""
        optimizer = f"{self.optimizer}(lr={self.learning_rate})"
        return f"optimizer='{optimizer}',loss='categorical_crossentropy',metrics=['accuracy']"

    @property
    def fit_params(self) -> str:
        """The text that MADlib expects."""
        return f"batch_size={self.batch_size}"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model-selection job.

    `rows`, `validation` and `epochs` are those of the report; the small scale has fewer. Validation
    rows are drawn with `draw` unless there is a `draw_held`.
    """

    key: str
    title: str
    draw: Callable[[np.random.Generator, int], Examples]
    rows: int
    validation: int
    classes: int
    architectures: tuple[str, ...]
    configs: tuple[Config, ...]
    epochs: int
    segments: int = 2
    small_rows: int
    small_epochs: int = 1
    draw_held: Callable[[np.random.Generator, int], Examples] | None = None

    def limit_batches(self, size: int) -> Workload:
        """Return the workload with the configurations of batches up to a size."""
        configs = tuple(config for config in self.configs if config.batch_size <= size)
        title = f"{self.title}, batches of at most {size}"
        return replace(self, key=f"{self.key}{size}", title=title, configs=configs)

    def extend_epochs(self, times: int) -> Workload:
        """Return the workload with more epochs."""
        title = f"{self.title}, {times} times the epochs"
        epochs = times * self.epochs
        small = times * self.small_epochs
        return replace(
            self, key=f"{self.key}x{times}", title=title, epochs=epochs, small_epochs=small
        )

    def count_rows(self, scale: str) -> int:
        """Return the number of training rows."""
        return self.rows if scale == REPORT else self.small_rows

    def count_validation_rows(self, scale: str) -> int:
        """Return the number of validation rows."""
        return self.validation if scale == REPORT else min(self.validation, self.small_rows)

    def count_epochs(self, scale: str) -> int:
        """Return the number of epochs."""
        return self.epochs if scale == REPORT else self.small_epochs

    def draw_examples(self, scale: str) -> tuple[Examples, Examples]:
        """Return training and validation rows, the same ones at every call."""
        rng = np.random.default_rng(DATA_SEED)
        draw_validation = self.draw_held or self.draw
        return self.draw(rng, self.count_rows(scale)), draw_validation(
            rng, self.count_validation_rows(scale)
        )


def make_grid(
    models: int, optimizers: Sequence[str], rates: Sequence[float], batches: Sequence[int]
) -> tuple[Config, ...]:
    """Return all combinations."""
    combined = itertools.product(range(1, models + 1), optimizers, rates, batches)
    return tuple(
        Config(model=m, optimizer=o, learning_rate=r, batch_size=b) for m, o, r, b in combined
    )


def make_perceptron(inputs: int, hidden: Sequence[int], classes: int, l2: float = 0.0) -> str:
    """Return a network of dense layers, with an L2 penalty on their kernels."""
    layers = [dense(units, f"hidden_{n}", **make_penalty(l2)) for n, units in enumerate(hidden)]
    return sequential([inputs], *layers, dense(classes, "classes", "softmax"))


def make_penalty(l2: float) -> Json:
    """Return the arguments of a layer for an L2 penalty on its kernel; none for 0."""
    if not l2:
        return {}
    config = {"module": "keras.regularizers", "class_name": "L2", "registered_name": None}
    return {"kernel_regularizer": {**config, "config": {"l2": l2}}}


def make_convolutional(filters: int) -> str:
    """Return a network of two convolutions with poolings, over pictures of 32 x 32 x 3."""
    return sequential(
        [32, 32, 3],
        layer(
            "Conv2D",
            "convolution_1",
            filters=filters,
            kernel_size=[3, 3],
            activation="relu",
            padding="same",
        ),
        layer("MaxPooling2D", "pool_1"),
        layer(
            "Conv2D",
            "convolution_2",
            filters=filters,
            kernel_size=[3, 3],
            activation="relu",
            padding="same",
        ),
        layer("MaxPooling2D", "pool_2"),
        layer("Flatten", "flat"),
        dense(64, "hidden"),
        dense(10, "classes", "softmax"),
    )


def make_recurrent(units: int) -> str:
    """Return a network of a convolution over time and an LSTM, over windows of 64 x 3."""
    return sequential(
        [64, 3],
        layer(
            "Conv1D", "convolution", filters=units, kernel_size=[5], strides=[2], activation="relu"
        ),
        layer("LSTM", "lstm", units=units),
        dense(6, "classes", "softmax"),
    )


WORKLOADS = {
    workload.key: workload
    for workload in (
        Workload(
            key="A",
            title="tabular MLP of 1000 and 500 units on 1,024 sparse zeros and ones",
            draw=draw_sparse,
            rows=6_144,
            validation=2_048,
            classes=2,
            architectures=tuple(make_perceptron(1024, (1000, 500), 2, l2) for l2 in (1e-4, 1e-6)),
            configs=make_grid(2, ["Adam"], [1e-3, 1e-4], [32, 64, 256, 512]),
            epochs=2,
            small_rows=1_024,
        ),
        Workload(
            key="B",
            title="small MLP of 64 and 32 units on 20 numbers",
            draw=draw_numeric,
            rows=20_000,
            validation=5_000,
            classes=3,
            architectures=(make_perceptron(20, (64, 32), 3),),
            configs=make_grid(1, ["Adam", "RMSprop"], [1e-2, 3e-3, 1e-3, 3e-4], [16, 32, 64, 128]),
            epochs=2,
            small_rows=4_000,
        ),
        Workload(
            key="C",
            title="convolutional network on pictures of 32 x 32 x 3",
            draw=draw_images,
            rows=2_048,
            validation=1_024,
            classes=10,
            architectures=(make_convolutional(32),),
            configs=make_grid(1, ["Adam", "SGD"], [1e-2, 1e-3], [32, 64]),
            epochs=2,
            small_rows=256,
        ),
        Workload(
            key="D",
            title="convolution and LSTM on windows of 64 steps of a three-axis sensor",
            draw=draw_series,
            rows=4_096,
            validation=1_024,
            classes=6,
            architectures=(make_recurrent(32),),
            configs=make_grid(1, ["Adam"], [1e-2, 3e-3, 1e-3, 3e-4], [32, 64]),
            epochs=3,
            small_rows=512,
        ),
        Workload(
            key="E",
            title="a state of 200 MB: 16.7 million weights with Adam",
            draw=draw_flowers,
            rows=64,
            validation=16,
            classes=3,
            architectures=(make_perceptron(4, (4080, 4080), 3),),
            configs=make_grid(1, ["Adam"], [1e-4], [32]),
            epochs=6,
            small_rows=64,
            small_epochs=4,
        ),
        Workload(
            key="F",
            title="a dozen configurations on 120 rows: start-up",
            draw=draw_flowers,
            rows=120,
            validation=30,
            classes=3,
            architectures=(make_perceptron(4, (10, 10), 3),),
            configs=make_grid(1, ["Adam"], [1e-1, 1e-2, 1e-3], [4, 8, 16, 32]),
            epochs=10,
            small_rows=120,
        ),
    )
}
WITH_TORCH = replace(WORKLOADS["B"].limit_batches(32), key="PyTorch")
"""Small batches, where what is around the arithmetic counts."""
