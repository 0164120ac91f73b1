"""Values of Keras variables on JAX's devices, and the error for memory that they lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import jax
import numpy as np

Values: TypeAlias = list[Any]
"""Arrays on the device, one per variable."""


def read_values(variables: Iterable[Any]) -> Values:
    return [variable.value for variable in variables]


def assign_values(variables: Iterable[Any], values: Values) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def move_to_device(variables: Sequence[Any]) -> Values:
    """Move the values of variables to the device, once for several calls; return them."""
    values = read_values(variables)
    if any(isinstance(value, np.ndarray) for value in values):
        values = jax.device_put(values)
        assign_values(variables, values)
    return values


def replace_values(values: Values, positions: Sequence[int], new_values: Values) -> Values:
    """Return the values with other ones at these positions."""
    replacements = dict(zip(positions, new_values, strict=True))
    return [replacements.get(position, value) for position, value in enumerate(values)]


@contextmanager
def temporary_values(variables: Sequence[Any], values: Values) -> Iterator[None]:
    """Give variables other values, also in the scopes that an optimizer opens by itself."""
    original_values = read_values(variables)
    assign_values(variables, values)
    try:
        yield
    finally:
        assign_values(variables, original_values)


@contextmanager
def convert_memory_errors() -> Iterator[None]:
    """Raise MemoryError if memory runs out; XLA has one exception, which begins with the reason."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if str(error).startswith("RESOURCE_EXHAUSTED"):
            raise MemoryError(str(error).partition(": ")[2]) from error
        raise
