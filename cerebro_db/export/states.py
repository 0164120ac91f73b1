"""Read the weights of a stored state, without its optimizer variables.

A state is a safetensors file whose metadata name the weights in the order of Keras' get_weights().
The state of an ensemble may be the concatenated states of its members.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cerebro_db.errors import ObjectNotReady
from cerebro_db.optional_imports import MODEL_EXTRAS, import_library

LENGTH = struct.Struct("<Q")


def read_weights(data: bytes) -> list[NDArray[Any]]:
    """Return the weights of one state, or of several concatenated states.

    Raises:
        ObjectNotReady: there is no state.
    """
    if not data:
        raise ObjectNotReady("the weights of the model are gone", hint="Train the model again.")
    return [weight for state in _split_states(data) for weight in _read_state(state)]


def compact_json(value: object) -> str:
    """Return JSON text without spaces."""
    return json.dumps(value, separators=(",", ":"))


def _split_states(data: bytes) -> Iterator[bytes]:
    begin = 0
    while begin < len(data):
        header_begin = begin + LENGTH.size
        header_end = header_begin + LENGTH.unpack_from(data, begin)[0]
        tensors = json.loads(data[header_begin:header_end])
        tensors.pop("__metadata__", None)
        ends = (entry["data_offsets"][1] for entry in tensors.values())
        end = header_end + max(ends, default=0)
        yield data[begin:end]
        begin = end


def _read_state(state: bytes) -> list[NDArray[Any]]:
    header_end = LENGTH.size + LENGTH.unpack_from(state)[0]
    header = json.loads(state[LENGTH.size : header_end])
    tensors = import_library("safetensors.numpy", MODEL_EXTRAS).load(state)
    return [np.asarray(tensors[name]) for name in json.loads(header["__metadata__"]["weights"])]
