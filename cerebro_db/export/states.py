"""The weights in a state: safetensors whose metadata name them, in the order of Keras'
get_weights().

The state of an ensemble may be those of its members, one behind another. Optimizer variables are
left out.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cerebro_db.errors import ObjectNotReady
from cerebro_db.optional_imports import import_library

LENGTH = struct.Struct("<Q")


def weights(state: bytes) -> list[NDArray[Any]]:
    """The weights of all states that lie one behind another."""
    if not state:
        raise ObjectNotReady("the weights of the model are gone", hint="Train the model again.")
    return [array for part in _parts(state) for array in _weights(part)]


def compact(value: object) -> str:
    """JSON text without blanks."""
    return json.dumps(value, separators=(",", ":"))


def _parts(state: bytes) -> Iterator[bytes]:
    begin = 0
    while begin < len(state):
        head = begin + LENGTH.size
        data = head + LENGTH.unpack_from(state, begin)[0]
        tensors = json.loads(state[head:data])
        tensors.pop("__metadata__", None)
        end = data + max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
        yield state[begin:end]
        begin = end


def _weights(state: bytes) -> list[NDArray[Any]]:
    header = json.loads(state[LENGTH.size : LENGTH.size + LENGTH.unpack_from(state)[0]])
    tensors = import_library("safetensors.numpy", "export").load(state)
    return [np.asarray(tensors[name]) for name in json.loads(header["__metadata__"]["weights"])]
