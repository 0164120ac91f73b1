"""Packed tables read back in Python, by the description of the format alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from workbench import Workbench

Array = npt.NDArray[Any]
FLOATS, ONE_HOT = "<f4", "<i2"


@dataclass(frozen=True)
class Buffer:
    """One row of a packed table: its segment, its number, and the array of each column asked for."""

    segment: int
    buffer_id: int
    arrays: tuple[Array, ...]

    @property
    def rows(self) -> int:
        """How many examples it holds."""
        return len(self.arrays[0])


def quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def buffers(bench: Workbench, table: str, **columns: str) -> list[Buffer]:
    """All buffers in order; `columns` are names of columns and the element types they are stored with."""
    return named_buffers(bench, table, list(columns.items()))


def named_buffers(bench: Workbench, table: str, columns: Sequence[tuple[str, str]]) -> list[Buffer]:
    """The same for columns of any name."""
    wanted = ", ".join(f"{quoted(name)}, {quoted(name + '_shape')}" for name, _ in columns)
    query = f"SELECT __dist_key__, buffer_id, {wanted} FROM {table} ORDER BY buffer_id"
    kinds = [kind for _, kind in columns]
    return [Buffer(row[0], row[1], _arrays(row[2:], kinds)) for row in bench.rows(query)]


def _arrays(fields: Sequence[Any], kinds: Sequence[str]) -> tuple[Array, ...]:
    pairs = zip(fields[::2], fields[1::2], kinds, strict=True)
    return tuple(np.frombuffer(data, kind).reshape(shape) for data, shape, kind in pairs)


def examples(found: Sequence[Buffer]) -> list[tuple[Array, ...]]:
    """The examples of all buffers, one after another."""
    return [parts for buffer in found for parts in zip(*buffer.arrays, strict=True)]
