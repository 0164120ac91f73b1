"""What the variables of a program look like, in which order a state has them, and which of them may
stand apart.

The weights of frozen layers are the same in all states of a configuration, and in those of others
that begin with the same layers: its *base*, which is known by a digest of what it holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

LEAST_BASE = 1 << 20
"""Bytes: less of it stays in each state."""
LEAST_SHARE = 3
"""So does less than such a part of the whole."""
DIGITS = 32
"""Of the digest of a base."""
CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
    "int32": "I32",
    "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
    "bool": "BOOL",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a program's variables look like.

    `weights` are the positions of get_weights(), in its order, `trainable` of those the ones that
    are trained; `paths` are what Keras calls the weights. Of `frozen` ones it is known that no step
    changes them.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    weights: tuple[int, ...]
    trainable: tuple[int, ...]
    paths: tuple[str, ...]
    architecture: str
    optimizer: str
    framework: str
    keras: str
    frozen: tuple[int, ...] = ()

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each variable."""
        pairs = zip(self.shapes, self.dtypes, strict=True)
        return tuple(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in pairs)

    @property
    def nbytes(self) -> int:
        """Bytes of all variables."""
        return sum(self.sizes)

    @cached_property
    def base(self) -> tuple[int, ...]:
        """Positions of frozen weights, as their tensors lie; none where they are too few to stand
        apart.
        """
        size = sum(self.sizes[position] for position in self.frozen)
        return (
            self._aligned(self.frozen) if size >= max(LEAST_BASE, self.nbytes / LEAST_SHARE) else ()
        )

    @cached_property
    def own(self) -> tuple[int, ...]:
        """Positions of all others, as their tensors lie."""
        return self._aligned({*range(len(self.shapes))} - {*self.base})

    @property
    def order(self) -> tuple[int, ...]:
        """Positions as their tensors lie in a state: those that may stand apart come last."""
        return self.own + self.base

    def _aligned(self, positions: Collection[int]) -> tuple[int, ...]:
        """Large elements first, so that all are aligned."""
        return tuple(sorted(positions, key=lambda p: (-np.dtype(self.dtypes[p]).itemsize, p)))


class Entry(NamedTuple):
    """A tensor of a state: its name, its type in safetensors' words, and where it ends in the
    data.
    """

    name: str
    code: str
    shape: tuple[int, ...]
    begin: int
    end: int


def name_of(position: int) -> str:
    """What a state calls the tensor of a variable."""
    return f"{position:05d}"
