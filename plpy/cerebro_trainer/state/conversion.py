"""Checks whether a state fits a program, and conversion between the types of frameworks.

Weights fit programs of any framework. Variables of an optimizer do if its class is in
PORTABLE_OPTIMIZERS: Keras then gives them the same order, shapes and meaning on each framework.
Counters and seeds have different types there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from cerebro_trainer.errors import ConfigError, DamagedState
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.state.layout import (
    CODES,
    Layout,
    TensorEntry,
    format_tensor_name,
    format_tensor_names,
)
from cerebro_trainer.wire.frames import Array

PORTABLE_OPTIMIZERS = frozenset(
    (
        "Adadelta",
        "Adafactor",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "Ftrl",
        "Lamb",
        "Lion",
        "Muon",
        "Nadam",
        "RMSprop",
        "SGD",
    )
)
"""Classes of optimizers whose variables mean the same on every framework.

A LossScaleOptimizer is not portable: a state does not contain the class of the optimizer inside
it, and each framework scales losses in its own way.
"""
COUNTER_DTYPES = ("int64", "int32", "uint32")
"""Types in which frameworks count steps and store the seeds of generators."""
DTYPES = {code: dtype for dtype, code in CODES.items()}
MAX_LISTED = 5
"""Number of mismatched weights that an error lists."""

Metadata = Mapping[str, str]


class Weight(NamedTuple):
    """A weight of a model."""

    path: str  # its name in Keras
    shape: tuple[int, ...]


def check_origin(metadata: Metadata, layout: Layout) -> None:
    """Check that a state belongs to the architecture and optimizer of a program.

    Raises:
        ConfigError: it does not, or the optimizer's variables do not fit this framework.
    """
    expected_metadata = {"architecture": layout.architecture, "optimizer": layout.optimizer}
    for key, expected in expected_metadata.items():
        if metadata.get(key) != expected:
            raise ConfigError(
                f"the state does not fit: its {key} is {metadata.get(key)}, expected {expected}",
                hint="A state continues the same architecture and optimizer only.",
            )
    if not _is_portable(metadata, layout):
        raise ConfigError(
            f"the state does not fit: {metadata.get('framework')} has left it, and what "
            f"{layout.optimizer} keeps does not go over to {layout.framework}",
            hint="Its weights do: begin from them, with an optimizer that begins anew.",
        )


def fits(metadata: Metadata, entries: Sequence[TensorEntry], layout: Layout) -> bool:
    """Return whether a state, perhaps of another program, could be a state of this program."""
    if metadata.get("optimizer") != layout.optimizer:
        return False
    if metadata.get("trainable") != format_tensor_names(layout.trainable):
        return False
    if not _is_portable(metadata, layout):
        return False
    expected = {}
    variables = zip(layout.dtypes, layout.shapes, strict=True)
    for position, (dtype, shape) in enumerate(variables):
        expected[format_tensor_name(position)] = (_type_class(CODES[dtype]), shape)
    return {entry.name: (_type_class(entry.code), entry.shape) for entry in entries} == expected


def check_tensor(entry: TensorEntry, position: int, layout: Layout) -> None:
    """Check that a tensor fits a variable.

    Raises:
        ConfigError: the tensor has another type or shape.
        DamagedState: the tensor has another size than its type and shape.
    """
    code = CODES[layout.dtypes[position]]
    shape = layout.shapes[position]
    if (_type_class(entry.code), entry.shape) != (_type_class(code), shape):
        raise ConfigError(
            f"tensor {entry.name} of the state is {entry.code}{list(entry.shape)}, expected "
            f"{code}{list(shape)}"
        )
    elements = layout.sizes[position] // np.dtype(DTYPES[code]).itemsize
    nbytes = elements * np.dtype(DTYPES[entry.code]).itemsize
    if entry.end - entry.begin != nbytes:
        raise DamagedState(
            f"tensor {entry.name} has {count_nouns(entry.end - entry.begin, 'byte')}, expected "
            f"{nbytes}"
        )


def convert_array(array: Array, dtype: str, entry: TensorEntry) -> Array:
    """Convert a tensor to the type of a variable; raise ConfigError if a number does not fit."""
    converted = array.astype(dtype, copy=False)
    if converted is not array and not np.array_equal(converted, array):
        raise ConfigError(
            f"tensor {entry.name} of the state has {array.max()}, which {dtype} does not hold"
        )
    return converted


def check_weight_shapes(received: Sequence[tuple[int, ...]], expected: Sequence[Weight]) -> None:
    """Check that weights have the shapes of a model's weights, in the order of get_weights().

    Raises:
        ConfigError: they do not; the error lists the first differences.
    """
    mismatches = []
    for weight, shape in zip_longest(expected, received, fillvalue=None):
        if weight is not None and shape != weight.shape:
            received_shape = "nothing" if shape is None else list(shape)
            mismatches.append(f"{weight.path} {list(weight.shape)}, received {received_shape}")
    if len(received) > len(expected):
        mismatches.append(
            f"nothing more, received {count_nouns(len(received) - len(expected), 'weight')} more"
        )
    if mismatches:
        ellipsis = "; …" if len(mismatches) > MAX_LISTED else ""
        raise ConfigError(
            f"the weights do not fit: the model has {'; '.join(mismatches[:MAX_LISTED])}{ellipsis}",
            hint="Weights are taken over one by one, in the order of get_weights(): as many, of "
            "the same shapes.",
        )


def _is_portable(metadata: Metadata, layout: Layout) -> bool:
    if layout.optimizer in PORTABLE_OPTIMIZERS:
        return True
    return metadata.get("framework", layout.framework) == layout.framework


def _type_class(code: str) -> str:
    """Return a name that all types share in which frameworks store the same variable."""
    return "count" if DTYPES.get(code) in COUNTER_DTYPES else code
