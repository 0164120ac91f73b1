"""Write rows of pandas into files that every environment of a contender can read.

Their releases of pandas and numpy differ, so a file has arrays and JSON, never pickles.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas

COLUMNS = "columns"
TEXTS = "texts"
ARRAYS = "arrays"


def write_frame(frame: pandas.DataFrame, path: Path) -> None:
    """Write columns of numbers, dates, texts and arrays of one shape."""
    kinds = {}
    arrays: dict[str, Any] = {}
    for number, name in enumerate(frame.columns):
        kind, array = _encode_column(frame[name])
        kinds[str(name)] = kind
        arrays[str(number)] = array
    with path.open("wb") as file:
        np.savez(file, **{**arrays, COLUMNS: _encode_json(kinds)})


def read_frame(path: Path) -> pandas.DataFrame:
    """Read the rows that `write_frame` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        kinds = json.loads(arrays[COLUMNS].tobytes())
        columns = {
            name: _decode_column(kind, arrays[str(number)])
            for number, (name, kind) in enumerate(kinds.items())
        }
    return pandas.DataFrame(columns)


def _encode_column(column: pandas.Series[Any]) -> tuple[str, np.ndarray]:
    """Return the kind of a column, and an array of its values."""
    if pandas.api.types.is_datetime64_any_dtype(column):
        return "", column.to_numpy("datetime64[s]")
    if pandas.api.types.is_numeric_dtype(column):
        return "", column.to_numpy(np.float64 if column.isna().any() else None)
    if len(column) > 0 and isinstance(column.iloc[0], np.ndarray):
        return ARRAYS, np.stack(column.to_list())
    texts = [None if pandas.isna(value) else str(value) for value in column]
    return TEXTS, _encode_json(texts)


def _decode_column(kind: str, array: np.ndarray) -> Any:
    """Return the values of a column for `pandas.DataFrame`."""
    if kind == ARRAYS:
        return [*array]
    if kind == TEXTS:
        texts = [np.nan if text is None else text for text in json.loads(array.tobytes())]
        return pandas.Series(texts, dtype=object)
    return array


def _encode_json(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
