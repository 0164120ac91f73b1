"""A buffer in the making: its rows come in blocks, each decoded as it comes, and are put into one
order at the end.

So whoever sends them, and whoever decodes them, holds a block at a time, however large a buffer is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import raw_rows, recipe_values, row_order
from cerebro_trainer.data.raw_rows import Array
from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import integer, items, text
from cerebro_trainer.wire.frames import Bytes

ROW_NUMBER = np.dtype(">i8")
MOST_BYTES = (1 << 30) - (1 << 20)
"""Of all arrays together: a row of PostgreSQL has less than 1 GB."""


class Packing:
    """The rows of one buffer that have come so far."""

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._blocks: list[list[Array]] = []
        """Of each column the values of each block, shape (rows, ...)."""
        self._bytes = 0

    def add(self, header: Mapping[str, Any], payload: Bytes) -> None:
        """Decode a block of rows; the payload's first part are their numbers, the others the
        columns.
        """
        entries, rows = items(header, "arrays"), integer(header, "rows", minimum=1)
        numbers, *parts = raw_rows.split(header, payload, len(entries) + 1)
        if numbers.nbytes != rows * ROW_NUMBER.itemsize:
            raise RequestError(
                f'"rows" is {rows}, but there are {numbers.nbytes} bytes of row numbers'
            )
        if self._numbers and len(entries) != len(self._blocks):
            raise RequestError(
                f"received {len(entries)} columns after a block of {len(self._blocks)}"
            )
        columns = [_column(entry, part, rows) for entry, part in zip(entries, parts, strict=True)]
        for entry, values, blocks in zip(entries, columns, self._blocks, strict=False):
            with raw_rows.told(entry):
                _check_alike(values, blocks[0])
        self._blocks = self._blocks or [[] for _ in entries]
        for values, blocks in zip(columns, self._blocks, strict=True):
            blocks.append(values)
            self._bytes += values.nbytes
        self._numbers.append(numbers.view(ROW_NUMBER).astype(np.int64))
        self._check_size()

    def _check_size(self) -> None:
        if self._bytes > MOST_BYTES:
            raise RequestError(
                f"{sum(map(len, self._numbers))} rows of a buffer take {self._bytes >> 20} MB; "
                f"expected at most {MOST_BYTES >> 20} MB",
                hint="Pack them with a smaller buffer_size.",
            )

    def shapes(self) -> list[tuple[int, ...]]:
        """Of each column, with its rows."""
        if not self._numbers:
            raise RequestError("no rows have come that could be packed", sqlstate="55000")
        rows = sum(map(len, self._numbers))
        return [(rows, *blocks[0].shape[1:]) for blocks in self._blocks]

    def columns(self, header: Mapping[str, Any]) -> Iterator[Array]:
        """Each column, of shape (rows, ...), whose blocks are let go.

        The rows come as it suits the database. Their order in the buffer follows from their
        numbers: by a hash under "seed" and "buffer_id", or as they are where the seed is null.
        """
        placed = np.argsort(np.concatenate(self._numbers), kind="stable")
        if header.get("seed") is not None:
            placed = placed[
                row_order.shuffled(
                    (integer(header, "seed"), integer(header, "buffer_id")), len(placed)
                )
            ]
        places = np.empty_like(placed)
        places[placed] = np.arange(len(placed))
        for blocks in self._blocks:
            yield _joined(blocks, places)


def _column(entry: dict[str, Any], part: Bytes, rows: int) -> Array:
    """The values of a column, by its recipe if it has one."""
    if "recipe" not in entry:
        return raw_rows.columns([entry], [part], rows)[0]
    with raw_rows.told(entry):
        found = recipe_values.read(text(entry, "recipe")).inputs(
            {"rows": rows, "arrays": [entry]}, part
        )
        if len(found) != 1:
            raise RequestError(f'"recipe" is for {len(found)} columns; expected one')
        return found[0]


def _joined(blocks: list[Array], places: npt.NDArray[np.intp]) -> Array:
    """The rows of all blocks, each at its place; no block stays."""
    joined, begin = np.empty((len(places), *blocks[0].shape[1:]), blocks[0].dtype), 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        joined[places[begin : begin + len(block)]] = block
        begin += len(block)
    return joined


def _check_alike(values: Array, before: Array) -> None:
    """Whether the rows of a block have the shape, and the type, of those before."""
    if values.shape[1:] != before.shape[1:] or values.dtype != before.dtype:
        shapes = ["x".join(map(str, each.shape[1:])) for each in (values, before)]
        raise RequestError(
            f"a row has shape {shapes[0]}, but others have shape {shapes[1]}",
            hint="All values of a column must have the same dimensions: leave the others out, or "
            "change them.",
        )
