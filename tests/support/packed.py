"""Packing tables, and reading packed tables back in Python by the description of their format
alone.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from workbench import Workbench

Array = npt.NDArray[Any]
FLOATS, ONE_HOT = "<f4", "<i2"
numbers = itertools.count(1)


@dataclass(frozen=True)
class Buffer:
    """One row of a packed table: its segment, its number, and the array of each column asked
    for.
    """

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
    """All buffers in order; `columns` are names of columns and the element types they are stored
    with.
    """
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


def bag(rows: Sequence[tuple[Array, ...]]) -> Counter[tuple[bytes, ...]]:
    """Rows without their order, bit for bit."""
    return Counter(tuple(part.tobytes() for part in row) for row in rows)


def fresh(stem: str = "t") -> str:
    """A table name that no other example uses."""
    return f"{stem}_{next(numbers)}"


def pack(
    bench: Workbench, source: str, target: str = "y", inputs: str = "x", **named: object
) -> str:
    """Pack into a new table; its name."""
    output = fresh("packed")
    text = "".join(f", {name} => %s" for name in named)
    bench.rows(
        f"SELECT training_preprocessor_dl(%s, %s, %s, %s{text})",
        source,
        output,
        target,
        inputs,
        *named.values(),
    )
    return output


def validate(
    bench: Workbench,
    source: str,
    training: str,
    target: str = "y",
    inputs: str = "x",
    **named: object,
) -> str:
    """Pack for validation into a new table; its name."""
    output = fresh("validation")
    text = "".join(f", {name} => %s" for name in named)
    bench.rows(
        f"SELECT validation_preprocessor_dl(%s, %s, %s, %s, %s{text})",
        source,
        output,
        target,
        inputs,
        training,
        *named.values(),
    )
    return output


def summary(bench: Workbench, table: str, column: str) -> Any:
    """A value of the summary of a packed table."""
    return bench.value(f"SELECT {column} FROM {table}_summary")
