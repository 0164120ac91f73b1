"""Decoding of raw rows, which SQL sends by column, for packing and for prediction.

The module needs numpy only, so that a trainer without a framework can use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from cerebro_trainer.data import arrays
from cerebro_trainer.errors import RequestError, RowError
from cerebro_trainer.nouns import count_nouns, match_verb
from cerebro_trainer.wire.fields import Header, integer, items, number, record, text, typed
from cerebro_trainer.wire.frames import Array, Bytes

FLOATS = {"float32": arrays.FLOAT4, "float64": arrays.FLOAT8}
INTEGERS = {"int32": arrays.INT4, "int64": arrays.INT8}
INPUT_KINDS = (*FLOATS, *INTEGERS, "image")
SEARCH_HINTS = {
    "22003": "Such rows are found by WHERE EXISTS (SELECT FROM unnest({array}) AS e WHERE e IN "
    "('NaN', 'Infinity', '-Infinity') OR abs(e) > 3.4e38).",
    "22004": "Such rows are found by WHERE EXISTS (SELECT FROM unnest({array}) AS e WHERE e IS "
    "NULL).",
    "22023": "The dimensions that there are: SELECT array_dims({array}), count(*) … GROUP BY 1.",
}
"""Ways to find the rows that caused an error, by its SQLSTATE."""


def decode_columns(entries: list[dict[str, Any]], parts: list[Bytes], rows: int) -> list[Array]:
    """Decode the values of each column, shape (rows, ...)."""
    columns = []
    for entry, part in zip(entries, parts, strict=True):
        with name_column_in_errors(entry):
            columns.append(_decode_column(entry, part, rows))
    return columns


@contextmanager
def name_column_in_errors(entry: Header) -> Iterator[None]:
    """Add the column and its table to the errors of a block, with a way to find such rows.

    The field `array` of the entry is the column as an SQL expression.
    """
    try:
        yield
    except RowError:
        raise
    except RequestError as error:
        if "source" not in entry:
            if "column" in entry:
                error.message += f" (column {text(entry, 'column')})"
            raise
        error.message += f" (column {text(entry, 'column')} of table {text(entry, 'source')})"
        names_number = error.sqlstate == "22003" and str(entry.get("kind")) in INTEGERS
        if "array" in entry and error.sqlstate in SEARCH_HINTS and not names_number:
            search_hint = SEARCH_HINTS[error.sqlstate].format(array=text(entry, "array"))
            error.detail = f"Rows are counted within a block, not in the table. {search_hint}"
        raise


def split_payload(header: Header, payload: Bytes, count: int) -> list[Bytes]:
    """Split a payload by "lengths", in bytes, which a payload of one array may lack."""
    if count == 1 and "lengths" not in header:
        return [payload]
    lengths = typed(header, "lengths", list)
    if len(lengths) != count or not all(type(n) is int and n >= 0 for n in lengths):
        raise RequestError(
            f'"lengths" must be {count_nouns(count, "number")} of bytes, received {lengths!r}'
        )
    if sum(lengths) != payload.nbytes:
        raise RequestError(
            f'"lengths" add up to {count_nouns(sum(lengths), "byte")}, but the payload has '
            f"{payload.nbytes}"
        )
    return [payload[begin:end] for begin, end in pairwise(accumulate(lengths, initial=0))]


def decode_inputs(header: Header, payload: Bytes) -> list[Array]:
    """Decode the independent columns of rows: float32 of shape (rows, ...)."""
    entries = items(header, "arrays")
    _check_kinds(entries)
    parts = split_payload(header, payload, len(entries))
    return decode_columns(entries, parts, integer(header, "rows", minimum=1))


def decode_inputs_and_target(header: Header, payload: Bytes) -> tuple[list[Array], Array]:
    """Decode the independent columns of rows, and their targets.

    Returns:
        The inputs, and the target of each row: a number or a class index, float64, shape (rows,).
    """
    entries = items(header, "arrays")
    target = record(header, "target")
    text(target, "kind", choices=tuple(FLOATS))
    _check_kinds(entries)
    rows = integer(header, "rows", minimum=1)
    parts = split_payload(header, payload, len(entries) + 1)
    *inputs, target_values = decode_columns([*entries, target], parts, rows)
    return inputs, target_values.reshape(rows, -1)[:, 0].astype(np.float64)


def _check_kinds(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        text(entry, "kind", choices=INPUT_KINDS)


def _decode_column(entry: Header, payload: Bytes, rows: int) -> Array:
    kind = text(entry, "kind", choices=(*INPUT_KINDS, "int16", "onehot"))
    if kind in INTEGERS:
        return arrays.decode_integers(payload, rows, INTEGERS[kind], _read_divisor(entry))
    if kind == "image":
        return _decode_images(entry, payload, rows)
    if kind in FLOATS:
        divisor = _read_divisor(entry)
        return _check_finite(arrays.decode_floats(payload, rows, divisor, FLOATS[kind]))
    if kind == "int16":
        return arrays.decode_small_integers(payload, rows)
    return arrays.encode_one_hot(payload, rows, integer(entry, "classes", minimum=1))


def _decode_images(entry: Header, payload: Bytes, rows: int) -> Array:
    # Imported here, because their library is needed for images only.
    from cerebro_trainer.data import images, thumbnails

    files = arrays.split_byteas(payload, rows)
    if thumbnails.have_headers(files):
        return thumbnails.decode(files)
    return images.decode(files, _read_divisor(entry), str(entry.get("column")))


def _check_finite(values: Array) -> Array:
    """Check that all values are numbers: relu would silently turn a NaN into 0."""
    rows = len(values)
    invalid = rows - int(np.isfinite(values.reshape(rows, -1)).all(axis=1).sum())
    if invalid:
        raise RequestError(
            f"{invalid} of a block of {count_nouns(rows, 'row')} {match_verb(invalid, 'has')} a "
            "value that is NaN, infinite or beyond the range of float32",
            sqlstate="22003",
            hint="Leave these rows out, or replace the values; normalizing_const makes large "
            "values small.",
        )
    return values


def _read_divisor(entry: Header) -> float | None:
    if entry.get("divide") is None:
        return None
    divisor = number(entry, "divide")
    with np.errstate(over="ignore", under="ignore"):
        rounded = abs(np.float32(divisor))
    if not 0 < rounded < np.inf:
        raise RequestError(
            f'"divide" must be a number that float32 has, and not 0; received {divisor}',
            sqlstate="22012",
        )
    return divisor
