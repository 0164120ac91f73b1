"""Shapes of a model's inputs and outputs, and conversion of a table's columns to them.

Keras silently broadcasts arrays of other shapes and then trains on nonsense. Shapes are therefore
checked here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.frames import Array, Arrays

Shape: TypeAlias = tuple[int | None, ...]
"""Shape without the batch dimension; None stands for any size."""


@dataclass(frozen=True)
class Output:
    """One output of the model with its dependent column.

    Raises:
        ConfigError: an output of this shape cannot have so many classes.
    """

    shape: Shape
    classes: int  # 0 for a column of floats
    takes_indices: bool  # the loss takes class indices instead of one-hot rows

    def __post_init__(self) -> None:
        if self.classes and not self.is_binary and not matches((self.classes,), self.shape):
            raise ConfigError(
                f"the model's output has shape {format_shape(self.shape)}, but its one-hot target "
                f"has {count_nouns(self.classes, 'class')}",
                sqlstate="42804",
                hint="The last layer needs one unit per class.",
            )

    @property
    def is_binary(self) -> bool:
        """True for two one-hot classes on one unit, which is trained on the second column."""
        return self.classes == 2 and self.shape == (1,)

    @property
    def target_shape(self) -> Shape:
        """Shape of the targets of losses and metrics; one-hot rows stay one-hot."""
        if self.takes_indices and not self.classes:
            return (*self.shape[:-1], 1)
        return self.shape

    def convert(self, target: Array, position: int) -> Array:
        """Return the target array in the target shape.

        Raises:
            ConfigError: the array has another shape, or values that are not class indices.
        """
        shape = target.shape[1:]
        expected = (self.classes,) if self.classes else self.target_shape
        if self.takes_indices and not self.classes:
            output = f"output {position + 1} of the model"
            _check_indices(target, self.shape[-1], output, "a class", "units")
        if matches(shape, expected):
            return target[:, 1:2] if self.is_binary else target
        if matches((*shape, 1), expected) and not self.classes:
            return target[..., np.newaxis]
        raise ConfigError(
            f"output {position + 1} of the model needs a target of shape "
            f"{format_shape(expected)}, received {format_shape(shape)}",
            sqlstate="42804",
        )


@dataclass(frozen=True)
class IoSpec:
    """All inputs and outputs of a model, by position.

    Frameworks treat a token or a class out of range differently, and on a GPU none reports it.
    """

    inputs: tuple[Shape, ...]
    outputs: tuple[Output, ...]
    vocabulary_sizes: tuple[int | None, ...]  # by input; None for an input without tokens

    def convert(self, buffer: Buffer) -> tuple[list[Array], list[Array]]:
        """Return the inputs and the targets of a buffer as the model takes them.

        The weights of rows follow the targets, if the buffer has any.
        """
        if len(buffer.targets) != len(self.outputs):
            raise ConfigError(
                f"the model has {count_nouns(len(self.outputs), 'output')}, but there are "
                f"{count_nouns(len(buffer.targets), 'dependent column')}",
                sqlstate="42804",
            )
        targets = [
            output.convert(target, position)
            for position, (output, target) in enumerate(
                zip(self.outputs, buffer.targets, strict=True)
            )
        ]
        weights = [] if buffer.weights is None else [buffer.weights]
        return self.convert_inputs(buffer.inputs), targets + weights

    def convert_inputs(self, arrays: Arrays) -> list[Array]:
        """Return independent columns as the model takes them: float32, of the model's shapes."""
        if len(arrays) != len(self.inputs):
            raise ConfigError(
                f"the model has {count_nouns(len(self.inputs), 'input')}, but there are "
                f"{count_nouns(len(arrays), 'independent column')}",
                sqlstate="42804",
            )
        inputs = [
            _convert_input(array, shape, position)
            for position, (array, shape) in enumerate(zip(arrays, self.inputs, strict=True))
        ]
        for position, (array, size) in enumerate(zip(inputs, self.vocabulary_sizes, strict=True)):
            if size is not None:
                name = f"input {position + 1} of the model"
                _check_indices(array, size, name, "a token", "embedded tokens")
        return inputs


def matches(shape: Sequence[int], expected: Shape) -> bool:
    """Return whether an array of this shape has the expected shape.

    >>> matches((3, 4), (None, 4)), matches((3,), (3, 1))
    (True, False)
    """
    if len(shape) != len(expected):
        return False
    return all(
        expected_size is None or size == expected_size
        for size, expected_size in zip(shape, expected, strict=True)
    )


def format_shape(shape: Sequence[int | None]) -> str:
    """Return a shape as text, with a star for any size."""
    return "[" + ", ".join("*" if size is None else str(size) for size in shape) + "]"


def _convert_input(array: Array, shape: Shape, position: int) -> Array:
    if len(array.shape) == 1 and shape == (1,):
        array = array[:, np.newaxis]
    if not matches(array.shape[1:], shape):
        raise ConfigError(
            f"input {position + 1} of the model has shape {format_shape(shape)}, but the data have "
            f"shape {format_shape(array.shape[1:])}",
            sqlstate="42804",
        )
    return array.astype(np.float32, copy=False)


def _check_indices(values: Array, size: int | None, port: str, meaning: str, units: str) -> None:
    """Check that all values are whole numbers from 0 to below `size`.

    Args:
        port: name of the input or output, for the error message.
        meaning: the thing that a value stands for.
        units: name of the things that `size` counts.
    """
    invalid = (values != np.trunc(values)) | (values < 0)
    if size is not None:
        invalid |= values >= size
    if invalid.any():
        raise ConfigError(
            f"{port} has {size} {units}, but {float(values[invalid][0]):g} stands for {meaning} "
            "in the data",
            sqlstate="22023",
            hint=f"Expected whole numbers from 0 to {size - 1 if size else 'the largest'}, packed "
            "without normalizing_const.",
        )
