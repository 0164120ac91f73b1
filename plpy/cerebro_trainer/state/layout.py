"""The variables of a program, their order in a state, and the part that states can share.

Weights of frozen layers are equal in all states of a configuration, and in those of other
configurations that begin with the same layers. They are the *base* of a state, which is identified
by a digest of its contents.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

Positions: TypeAlias = tuple[int, ...]
"""Positions of variables in a state."""
MIN_BASE_BYTES = 1 << 20
"""A smaller base remains in each state."""
MAX_STATE_PER_BASE = 3
"""So does a base if the whole state is more than this many times larger."""
DIGEST_DIGITS = 32
"""Hexadecimal digits of the digest of a base."""
CODES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
"""Codes of safetensors for the types of variables."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The variables of a program; a variable is identified by its position."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    weights: Positions  # positions of the weights, in the order of get_weights()
    trainable: Positions  # positions of the weights that are trained
    paths: tuple[str, ...]  # names of the weights in Keras
    architecture: str  # hash
    optimizer: str  # class
    framework: str
    keras: str  # version
    frozen: Positions = ()  # positions of the weights that no training step changes

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of each variable."""
        variables = zip(self.shapes, self.dtypes, strict=True)
        return tuple(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in variables)

    @property
    def nbytes(self) -> int:
        """The bytes of all variables."""
        return sum(self.sizes)

    @cached_property
    def base_positions(self) -> Positions:
        """The frozen weights in the order of their tensors; empty if they are too small."""
        size = sum(self.sizes[position] for position in self.frozen)
        if size < max(MIN_BASE_BYTES, self.nbytes / MAX_STATE_PER_BASE):
            return ()
        return self._sort_for_alignment(self.frozen)

    @cached_property
    def main_positions(self) -> Positions:
        """All variables outside the base, in the order of their tensors."""
        return self._sort_for_alignment({*range(len(self.shapes))} - {*self.base_positions})

    @property
    def tensor_order(self) -> Positions:
        """All variables in the order of their tensors in a state: those of the base come last."""
        return self.main_positions + self.base_positions

    def _sort_for_alignment(self, positions: Collection[int]) -> Positions:
        """Sort large elements first, so that all tensors are aligned."""
        return tuple(sorted(positions, key=lambda p: (-np.dtype(self.dtypes[p]).itemsize, p)))


class TensorEntry(NamedTuple):
    """A tensor in the header of a state."""

    name: str
    code: str  # type, see CODES
    shape: tuple[int, ...]
    begin: int  # first byte, counted from the end of the header
    end: int


def format_tensor_names(positions: Positions) -> str:
    """Return the names of the tensors of variables as JSON."""
    return json.dumps([format_tensor_name(position) for position in positions])


def format_tensor_name(position: int) -> str:
    """Return the name of a variable's tensor in a state."""
    return f"{position:05d}"
