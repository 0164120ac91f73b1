"""Packing of a buffer, whose rows arrive in blocks and are put into one order at the end.

The sender and this trainer handle one block at a time, however large the buffer is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import raw_rows, recipe_values, row_order
from cerebro_trainer.data.arrays import Integers
from cerebro_trainer.errors import RequestError
from cerebro_trainer.nouns import count_nouns, match_verb
from cerebro_trainer.wire.fields import Header, integer, items, text
from cerebro_trainer.wire.frames import Array, Bytes

ROW_NUMBER = np.dtype(">i8")
MAX_BYTES = (1 << 30) - (1 << 20)
"""Limit for all arrays of a buffer: a row of PostgreSQL has less than 1 GB."""


class BufferPacker:
    """The rows of one buffer that have arrived so far."""

    def __init__(self) -> None:
        # By block, shape (rows,)
        self._row_numbers: list[Integers] = []
        # By column and block, shape (rows, ...)
        self._columns: list[list[Array]] = []
        self._nbytes = 0

    @property
    def _row_count(self) -> int:
        return sum(map(len, self._row_numbers))

    def add(self, header: Header, payload: Bytes) -> None:
        """Decode a block; the payload contains the numbers of the rows, then their columns."""
        entries = items(header, "arrays")
        rows = integer(header, "rows", minimum=1)
        row_numbers, *parts = raw_rows.split_payload(header, payload, len(entries) + 1)
        if row_numbers.nbytes != rows * ROW_NUMBER.itemsize:
            raise RequestError(
                f'"rows" is {rows}, but there are {count_nouns(row_numbers.nbytes, "byte")} of row '
                "numbers"
            )
        if self._row_numbers and len(entries) != len(self._columns):
            raise RequestError(
                f"received {count_nouns(len(entries), 'column')} after a block of "
                f"{len(self._columns)}"
            )
        arrays = [
            _decode_column(entry, part, rows) for entry, part in zip(entries, parts, strict=True)
        ]
        for entry, array, blocks in zip(entries, arrays, self._columns, strict=False):
            with raw_rows.name_column_in_errors(entry):
                _check_same_type(array, blocks[0])
        if not self._columns:
            self._columns = [[] for _ in entries]
        for array, blocks in zip(arrays, self._columns, strict=True):
            blocks.append(array)
            self._nbytes += array.nbytes
        self._row_numbers.append(row_numbers.view(ROW_NUMBER).astype(np.int64))
        self._check_size()

    def _check_size(self) -> None:
        if self._nbytes > MAX_BYTES:
            raise RequestError(
                f"{count_nouns(self._row_count, 'row')} of a buffer "
                f"{match_verb(self._row_count, 'takes')} {self._nbytes >> 20} MB; "
                f"expected at most {MAX_BYTES >> 20} MB",
                hint="Pack them with a smaller buffer_size.",
            )

    def get_shapes(self) -> list[tuple[int, ...]]:
        """Return the shape (rows, ...) of each column."""
        if not self._row_numbers:
            raise RequestError("no rows have come that could be packed", sqlstate="55000")
        return [(self._row_count, *blocks[0].shape[1:]) for blocks in self._columns]

    def take_columns(self, header: Header) -> Iterator[Array]:
        """Yield each column, shape (rows, ...), and release its blocks.

        The database sends the rows in any order. Their order in the buffer depends on their
        numbers: shuffled with "seed" and "buffer_id", or sorted if the seed is null.
        """
        order = np.argsort(np.concatenate(self._row_numbers), kind="stable")
        if header.get("seed") is not None:
            key = (integer(header, "seed"), integer(header, "buffer_id"))
            order = order[row_order.shuffle(key, len(order))]
        positions = np.empty_like(order)
        positions[order] = np.arange(len(order))
        for blocks in self._columns:
            yield _merge_blocks(blocks, positions)


def _decode_column(entry: dict[str, Any], part: Bytes, rows: int) -> Array:
    """Decode the values of a column, with its recipe if it has one."""
    if "recipe" not in entry:
        return raw_rows.decode_columns([entry], [part], rows)[0]
    with raw_rows.name_column_in_errors(entry):
        recipe = recipe_values.parse_recipe(text(entry, "recipe"))
        arrays = recipe.encode({"rows": rows, "arrays": [entry]}, part)
        if len(arrays) != 1:
            raise RequestError(
                f'"recipe" is for {count_nouns(len(arrays), "column")}; expected one'
            )
        return arrays[0]


def _merge_blocks(blocks: list[Array], positions: npt.NDArray[np.intp]) -> Array:
    """Merge blocks into one array, each row at its position, and empty the list of blocks."""
    merged = np.empty((len(positions), *blocks[0].shape[1:]), blocks[0].dtype)
    begin = 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        merged[positions[begin : begin + len(block)]] = block
        begin += len(block)
    return merged


def _check_same_type(values: Array, earlier: Array) -> None:
    """Check that the rows of a block have the shape and the type of earlier rows."""
    if values.shape[1:] != earlier.shape[1:] or values.dtype != earlier.dtype:
        shape, earlier_shape = ("x".join(map(str, a.shape[1:])) for a in (values, earlier))
        raise RequestError(
            f"a row has shape {shape}, but others have shape {earlier_shape}",
            hint="All values of a column must have the same dimensions: leave the others out, or "
            "change them.",
        )
