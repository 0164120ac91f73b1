"""A config's state as bytes: safetensors, which hold no code, with tensors named by position.

Positions, not names: Keras renames variables when a model is rebuilt from JSON, and matching by name then
skips them without a word. The order is `model.variables + optimizer.variables` after `optimizer.build`.
Generator states stand in the middle of it, so the header says which entries are weights.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.wire import Bytes

FORMAT = "cerebro_db.state/1"
LENGTH_BYTES = 8

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a program's variables look like; `weights` are the positions of get_weights(), in its order."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    weights: tuple[int, ...]
    architecture: str
    optimizer: str
    framework: str
    keras: str

    @property
    def nbytes(self) -> int:
        """Bytes of all variables."""
        sizes = (int(np.prod(shape, dtype=np.int64)) for shape in self.shapes)
        return sum(size * np.dtype(dtype).itemsize for size, dtype in zip(sizes, self.dtypes, strict=True))


def dump(values: Sequence[Array], layout: Layout, step: int) -> bytes:
    """The state of a program with this layout after `step` optimizer steps."""
    metadata = {
        "format": FORMAT,
        "keras": layout.keras,
        "framework": layout.framework,
        "architecture": layout.architecture,
        "optimizer": layout.optimizer,
        "step": str(step),
        "weights": json.dumps([_name(position) for position in layout.weights]),
    }
    tensors = {
        _name(position): np.ascontiguousarray(value).reshape(value.shape) for position, value in enumerate(values)
    }
    return safetensors.numpy.save(tensors, metadata)


def load(chunks: Sequence[Bytes], layout: Layout) -> list[Array]:
    """The variables' values from a state's chunks; ConfigError says what does not fit the program."""
    data = b"".join(chunk.data for chunk in chunks)
    try:
        metadata = _metadata(data)
        tensors = safetensors.numpy.load(data)
    except (SafetensorError, ValueError) as error:
        raise RequestError(f"the state is damaged: {error}", sqlstate="XX001") from error
    for key, expected in (
        ("format", FORMAT),
        ("architecture", layout.architecture),
        ("optimizer", layout.optimizer),
    ):
        if metadata.get(key) != expected:
            raise ConfigError(
                f"the state does not fit: its {key} is {metadata.get(key)}, expected {expected}",
                hint="A state continues the same architecture and optimizer only.",
            )
    if len(tensors) != len(layout.shapes):
        raise ConfigError(f"the state has {len(tensors)} tensors, the model and optimizer have {len(layout.shapes)}")
    values = [tensors[_name(position)] for position in range(len(tensors))]
    for position, value in enumerate(values):
        _check(position, value, layout)
    return values


def with_flat_weights(values: Sequence[Array], chunks: Sequence[Bytes], layout: Layout) -> list[Array]:
    """`values` with its weights replaced by raw float32 in get_weights() order."""
    data = b"".join(chunk.data for chunk in chunks)
    sizes = [int(np.prod(layout.shapes[position], dtype=np.int64)) for position in layout.weights]
    if len(data) != 4 * sum(sizes):
        raise ConfigError(
            f"Number of elements in model weights({len(data) / 4:g}) doesn't match model({sum(sizes)}): received "
            f"{len(data)} bytes, expected {4 * sum(sizes)}"
        )
    result, offset = list(values), 0
    flat = np.frombuffer(data, dtype="<f4")
    for position, size in zip(layout.weights, sizes, strict=True):
        part = flat[offset : offset + size].reshape(layout.shapes[position])
        result[position] = part.astype(layout.dtypes[position])
        offset += size
    return result


def _metadata(data: bytes) -> dict[str, str]:
    """The header's free part, which safetensors reads from files only: u64 length, then JSON."""
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    header = json.loads(data[LENGTH_BYTES : LENGTH_BYTES + length])
    metadata = header.get("__metadata__", {})
    return metadata if isinstance(metadata, dict) else {}


def _check(position: int, value: Array, layout: Layout) -> None:
    received = (value.dtype.name, value.shape)
    expected = (layout.dtypes[position], layout.shapes[position])
    if received != expected:
        raise ConfigError(
            f"tensor {_name(position)} of the state is {received[0]}{list(received[1])}, "
            f"expected {expected[0]}{list(expected[1])}"
        )


def _name(position: int) -> str:
    return f"{position:05d}"
