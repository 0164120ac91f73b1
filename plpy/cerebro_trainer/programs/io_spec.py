"""Where a model's inputs and outputs meet a table's columns: the shapes expected, and arrays
brought to them.

Keras broadcasts quietly where shapes differ and then trains on nonsense, so shapes are compared
here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError

Shape: TypeAlias = tuple[int | None, ...]
"""Without the batch dimension; None fits any size."""
Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Output:
    """One output of the model with its dependent column.

    `shape` is the output's; `classes` is 0 for floats; `indices` says that the loss wants class
    indices. ConfigError where an output cannot have so many classes.
    """

    shape: Shape
    classes: int
    indices: bool

    def __post_init__(self) -> None:
        if self.classes and not self.binary and not matches((self.classes,), self.shape):
            raise ConfigError(
                f"the model's output has shape {show(self.shape)}, but its one-hot target has "
                f"{self.classes} classes",
                sqlstate="42804",
                hint="The last layer needs one unit per class.",
            )

    @property
    def binary(self) -> bool:
        """Two one-hot classes on one unit: trained on the second class's column."""
        return self.classes == 2 and self.shape == (1,)

    @property
    def target_shape(self) -> Shape:
        """What losses and metrics are given: one-hot rows stay one-hot, floats get the output's
        shape.
        """
        return (*self.shape[:-1], 1) if self.indices and not self.classes else self.shape

    def fit(self, target: Array, position: int) -> Array:
        """The target array in that shape; ConfigError where it cannot be."""
        shape = target.shape[1:]
        expected = (self.classes,) if self.classes else self.target_shape
        if self.indices and not self.classes:
            _check_whole(
                target, self.shape[-1], f"output {position + 1} of the model", "a class", "units"
            )
        if matches(shape, expected):
            return target[:, 1:2] if self.binary else target
        if matches((*shape, 1), expected) and not self.classes:
            return target[..., np.newaxis]
        raise ConfigError(
            f"output {position + 1} of the model needs a target of shape {show(expected)}, "
            f"received {show(shape)}",
            sqlstate="42804",
        )


@dataclass(frozen=True)
class IoSpec:
    """All inputs and outputs of a model, by position; `tokens` are the sizes of the vocabularies of
    inputs, or None.

    Frameworks differ in what they do with a token or a class out of range, and on a GPU none says a
    word.
    """

    inputs: tuple[Shape, ...]
    outputs: tuple[Output, ...]
    tokens: tuple[int | None, ...]

    def fit(self, buffer: Buffer) -> tuple[list[Array], list[Array]]:
        """A buffer's arrays as the model takes them; behind the targets the weights of rows, where
        there are any.
        """
        if len(buffer.targets) != len(self.outputs):
            raise ConfigError(
                f"the model has {len(self.outputs)} outputs, but there are {len(buffer.targets)} "
                "dependent columns",
                sqlstate="42804",
            )
        targets = [
            output.fit(target, position)
            for position, (output, target) in enumerate(
                zip(self.outputs, buffer.targets, strict=True)
            )
        ]
        weights = [] if buffer.weights is None else [buffer.weights]
        return self.fit_inputs(buffer.inputs), targets + weights

    def fit_inputs(self, arrays: Sequence[Array]) -> list[Array]:
        """Independent columns as the model takes them: float32, of the model's shapes."""
        if len(arrays) != len(self.inputs):
            raise ConfigError(
                f"the model has {len(self.inputs)} inputs, but there are {len(arrays)} independent "
                "columns",
                sqlstate="42804",
            )
        fitted = [
            _fit_input(array, shape, position)
            for position, (array, shape) in enumerate(zip(arrays, self.inputs, strict=True))
        ]
        for position, (array, size) in enumerate(zip(fitted, self.tokens, strict=True)):
            if size is not None:
                _check_whole(
                    array, size, f"input {position + 1} of the model", "a token", "embedded tokens"
                )
        return fitted


def matches(shape: Sequence[int], expected: Shape) -> bool:
    """Whether an array of this shape is one of the expected shape.

    >>> matches((3, 4), (None, 4)), matches((3,), (3, 1))
    (True, False)
    """
    return len(shape) == len(expected) and all(
        e is None or s == e for s, e in zip(shape, expected, strict=True)
    )


def show(shape: Sequence[int | None]) -> str:
    """A shape as text, any size as a star."""
    return "[" + ", ".join("*" if size is None else str(size) for size in shape) + "]"


def _fit_input(array: Array, shape: Shape, position: int) -> Array:
    if len(array.shape) == 1 and shape == (1,):
        array = array[:, np.newaxis]
    if not matches(array.shape[1:], shape):
        raise ConfigError(
            f"input {position + 1} of the model has shape {show(shape)}, but the data have shape "
            f"{show(array.shape[1:])}",
            sqlstate="42804",
        )
    return array.astype(np.float32, copy=False)


def _check_whole(values: Array, size: int | None, where: str, one: str, what: str) -> None:
    """Raise ConfigError unless all values are whole numbers from 0 to below `size`."""
    wrong = (values != np.trunc(values)) | (values < 0)
    if size is not None:
        wrong |= values >= size
    if wrong.any():
        raise ConfigError(
            f"{where} has {size} {what}, but {float(values[wrong][0]):g} stands for {one} in the "
            "data",
            sqlstate="22023",
            hint=f"Expected whole numbers from 0 to {size - 1 if size else 'the largest'}, packed "
            "without normalizing_const.",
        )
