"""Columns of raw rows, as SQL sends them, to arrays: those that a packed table stores, and a
model's inputs.

It needs numpy only, so a trainer without a framework serves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import arrays
from cerebro_trainer.errors import RequestError, RowError
from cerebro_trainer.wire.fields import integer, items, number, record, text, typed
from cerebro_trainer.wire.frames import Bytes

Array = npt.NDArray[Any]

FLOATS = {"float32": arrays.FLOAT4, "float64": arrays.FLOAT8}
WHOLE = {"int32": arrays.INT4, "int64": arrays.INT8}
INPUTS = (*FLOATS, *WHOLE, "image")
FINDING = {
    "22003": "Such rows are found by WHERE EXISTS (SELECT FROM unnest({array}) AS e WHERE e IN "
    "('NaN', 'Infinity', '-Infinity') OR abs(e) > 3.4e38).",
    "22004": "Such rows are found by WHERE EXISTS (SELECT FROM unnest({array}) AS e WHERE e IS "
    "NULL).",
    "22023": "The dimensions that there are: SELECT array_dims({array}), count(*) … GROUP BY 1.",
}
"""How to find the rows that caused an error, by its SQLSTATE."""


def columns(entries: list[dict[str, Any]], parts: list[Bytes], rows: int) -> list[Array]:
    """The values of each column, of shape (rows, ...)."""
    found = []
    for entry, part in zip(entries, parts, strict=True):
        with told(entry):
            found.append(_decoded(entry, part, rows))
    return found


@contextmanager
def told(entry: Mapping[str, Any]) -> Iterator[None]:
    """An error of a column names it where its table is known.

    It says how such rows are found, where "array" is the column in SQL.
    """
    try:
        yield
    except RowError:
        raise
    except RequestError as error:
        if "source" not in entry:
            error.message += f" (column {text(entry, 'column')})" if "column" in entry else ""
            raise
        error.message += f" (column {text(entry, 'column')} of table {text(entry, 'source')})"
        whole = (
            str(entry.get("kind")) in WHOLE and error.sqlstate == "22003"
        )  # it names the number itself
        if "array" in entry and error.sqlstate in FINDING and not whole:
            found = FINDING[error.sqlstate].format(array=text(entry, "array"))
            error.detail = f"Rows are counted within a block, not in the table. {found}"
        raise


def split(header: Mapping[str, Any], payload: Bytes, count: int) -> list[Bytes]:
    """The payload's parts by "lengths" in bytes; the whole payload where there is one array."""
    if count == 1 and "lengths" not in header:
        return [payload]
    lengths = typed(header, "lengths", list)
    if len(lengths) != count or not all(type(n) is int and n >= 0 for n in lengths):
        raise RequestError(f'"lengths" must be {count} numbers of bytes, received {lengths!r}')
    if sum(lengths) != payload.nbytes:
        raise RequestError(
            f'"lengths" add up to {sum(lengths)} bytes, but the payload has {payload.nbytes}'
        )
    parts, offset = [], 0
    for length in lengths:
        parts.append(payload[offset : offset + length])
        offset += length
    return parts


def inputs(header: Mapping[str, Any], payload: Bytes) -> list[Array]:
    """The independent columns of raw rows, for prediction: float32 of shape (rows, ...)."""
    entries = items(header, "arrays")
    for entry in entries:
        text(entry, "kind", choices=INPUTS)
    return columns(
        entries, split(header, payload, len(entries)), integer(header, "rows", minimum=1)
    )


def inputs_and_target(header: Mapping[str, Any], payload: Bytes) -> tuple[list[Array], Array]:
    """The same with a number of each row behind them, float64: what a model should give for it, or
    a class.
    """
    entries, target = items(header, "arrays"), record(header, "target")
    text(target, "kind", choices=tuple(FLOATS))
    for entry in entries:
        text(entry, "kind", choices=INPUTS)
    rows = integer(header, "rows", minimum=1)
    *found, last = columns([*entries, target], split(header, payload, len(entries) + 1), rows)
    return found, last.reshape(rows, -1)[:, 0].astype(np.float64)


def _decoded(entry: Mapping[str, Any], payload: Bytes, rows: int) -> Array:
    kind = text(entry, "kind", choices=(*INPUTS, "int16", "onehot"))
    if kind in WHOLE:
        return arrays.whole_numbers(payload, rows, WHOLE[kind], _divisor(entry))
    if kind == "image":
        from cerebro_trainer.data import (
            images,
            thumbnails,  # their library is needed where there are images only
        )

        files = arrays.variable_length(payload, rows)
        if thumbnails.asked(files):
            return thumbnails.decode(files)
        return images.decode(files, _divisor(entry), str(entry.get("column")))
    if kind in FLOATS:
        return _finite(arrays.floats(payload, rows, _divisor(entry), FLOATS[kind]))
    if kind == "int16":
        return arrays.small_integers(payload, rows)
    return arrays.one_hot(payload, rows, integer(entry, "classes", minimum=1))


def _finite(values: Array) -> Array:
    """The values, which must be numbers: relu turns a NaN into 0, and nobody would notice."""
    rows = len(values)
    bad = rows - int(np.isfinite(values.reshape(rows, -1)).all(axis=1).sum())
    if bad:
        raise RequestError(
            f"{bad} of a block of {rows} rows have a value that is NaN, infinite or beyond the "
            "range of float32",
            sqlstate="22003",
            hint="Leave these rows out, or replace the values; normalizing_const makes large "
            "values small.",
        )
    return values


def _divisor(entry: Mapping[str, Any]) -> float | None:
    if entry.get("divide") is None:
        return None
    divisor = number(entry, "divide")
    with np.errstate(over="ignore", under="ignore"):
        divided_by = abs(np.float32(divisor))
    if not 0 < divided_by < np.inf:
        raise RequestError(
            f'"divide" must be a number that float32 has, and not 0; received {divisor}',
            sqlstate="22012",
        )
    return divisor
