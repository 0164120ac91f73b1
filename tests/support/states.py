"""Reads states as the trainer writes them, and trains by the wire protocol without a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import safetensors.numpy
from workbench import Row, Workbench

from cerebro_plpy.trainer_client.connection import TrainerConnection

Header = dict[str, Any]


def stored(bench: Workbench, output: str, mst_key: int) -> bytes:
    """The state of a config of a model table."""
    query = f"SELECT chunk FROM {bench.states(output)} WHERE mst_key = %s ORDER BY part"
    return b"".join(bytes(chunk) for (chunk,) in bench.rows(query, mst_key))


def tensors(state: bytes) -> list[np.ndarray]:
    """All tensors of a state by position: the model's variables, then the optimizer's."""
    by_name = safetensors.numpy.load(state)
    return [by_name[name] for name in sorted(by_name)]


def metadata(state: bytes) -> dict[str, str]:
    """What a state says of itself."""
    length = int.from_bytes(state[:8], "little")
    found: dict[str, str] = json.loads(state[8 : 8 + length])["__metadata__"]
    return found


def same(one: bytes, other: bytes) -> bool:
    """Whether two states are equal bit for bit; their headers may list the tensors in different
    order.
    """
    pairs = zip(tensors(one), tensors(other), strict=True)
    return metadata(one) == metadata(other) and all(
        (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in pairs
    )


def weights(state: bytes) -> bytes:
    """What get_weights() gives, flat."""
    by_name = safetensors.numpy.load(state)
    return b"".join(
        by_name[name].astype("<f4").tobytes() for name in json.loads(metadata(state)["weights"])
    )


def packed_rows(bench: Workbench, table: str, segment: int, target: str = "label") -> list[Row]:
    """The buffers of one segment in order: number, input and its shape, target and its shape."""
    return bench.rows(
        f"SELECT buffer_id, x, x_shape, {target}, {target}_shape FROM {table}"
        " WHERE __dist_key__ = %s ORDER BY buffer_id",
        segment,
    )


@contextmanager
def trainer(link: TrainerConnection) -> Iterator[TrainerConnection]:
    """A trainer that ends with the block."""
    try:
        yield link
    finally:
        link.close()


def load(link: TrainerConnection, dataset: str, rows: list[Row]) -> Header:
    """Give a trainer the buffers of one segment; what it says of them."""
    link.send({"do": "open", "dataset": dataset, "cache_bytes": 1 << 30})
    for buffer_id, x, x_shape, y, y_shape in rows:
        kind = "int16" if len(bytes(y)) == 2 * int(np.prod(y_shape)) else "float32"
        arrays = [
            {"role": "x", "dtype": "float32", "shape": x_shape},
            {"role": "y", "dtype": kind, "shape": y_shape},
        ]
        link.send(
            {"do": "buffer", "dataset": dataset, "buffer_id": buffer_id, "arrays": arrays},
            bytes(x),
            bytes(y),
        )
    return link.call({"do": "close", "dataset": dataset})
