"""Whether a state fits a program, which may run on another framework than the one that has left it.

Weights go over to any framework. What an optimizer keeps does where its class stands in CROSSING:
there Keras gives its variables the same order, shapes and meaning on each of them. Numbers that
count or seed are of other types there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.state.layout import CODES, Entry, Layout, name_of
from cerebro_trainer.wire.streams import damaged

CROSSING = frozenset(
    {
        *(
            "Adadelta",
            "Adafactor",
            "Adagrad",
            "Adam",
            "AdamW",
            "Adamax",
            "Ftrl",
            "Lamb",
            "Lion",
            "Muon",
            "Nadam",
        ),
        *("RMSprop", "SGD"),
    }
)
"""Classes of optimizers whose variables mean the same on every framework. One that scales losses is
not among them: a state does not say of which class the optimizer is that it scales them for, and
each framework has a way of its own."""
COUNTS = ("int64", "int32", "uint32")
"""Types in which frameworks count steps, and hold the seeds of generators."""
TYPES = {code: dtype for dtype, code in CODES.items()}

Array = npt.NDArray[Any]
Metadata = Mapping[str, str]


def check_origin(metadata: Metadata, layout: Layout) -> None:
    """Raises ConfigError where a state is that of another architecture or optimizer, or its
    optimizer's variables mean something else here."""
    for key, expected in {
        "architecture": layout.architecture,
        "optimizer": layout.optimizer,
    }.items():
        if metadata.get(key) != expected:
            raise ConfigError(
                f"the state does not fit: its {key} is {metadata.get(key)}, expected {expected}",
                hint="A state continues the same architecture and optimizer only.",
            )
    if not _crosses(metadata, layout):
        raise ConfigError(
            f"the state does not fit: {metadata.get('framework')} has left it, and what "
            f"{layout.optimizer} keeps does not go over to {layout.framework}",
            hint="Its weights do: begin from them, with an optimizer that begins anew.",
        )


def fits(metadata: Metadata, entries: Sequence[Entry], layout: Layout) -> bool:
    """Whether a state of perhaps another program is one that this program could have left."""
    trainable = json.dumps([name_of(position) for position in layout.trainable])
    if (metadata.get("optimizer"), metadata.get("trainable")) != (layout.optimizer, trainable):
        return False
    pairs = enumerate(zip(layout.dtypes, layout.shapes, strict=True))
    expected = {
        name_of(position): (_kind(CODES[dtype]), shape) for position, (dtype, shape) in pairs
    }
    return (
        _crosses(metadata, layout)
        and {each.name: (_kind(each.code), each.shape) for each in entries} == expected
    )


def check(entry: Entry, position: int, layout: Layout) -> None:
    """Raises ConfigError where a tensor does not fit a variable, and RequestError where it is
    none.
    """
    code, shape = CODES[layout.dtypes[position]], layout.shapes[position]
    if (_kind(entry.code), entry.shape) != (_kind(code), shape):
        raise ConfigError(
            f"tensor {entry.name} of the state is {entry.code}{list(entry.shape)}, expected "
            f"{code}{list(shape)}"
        )
    nbytes = (
        layout.sizes[position]
        // np.dtype(TYPES[code]).itemsize
        * np.dtype(TYPES[entry.code]).itemsize
    )
    if entry.end - entry.begin != nbytes:
        raise damaged(f"tensor {entry.name} has {entry.end - entry.begin} bytes, expected {nbytes}")


def converted(array: Array, dtype: str, entry: Entry) -> Array:
    """The numbers of a tensor in the type of a variable; ConfigError where that does not hold
    them.
    """
    found = array.astype(dtype, copy=False)
    if found is not array and not np.array_equal(found, array):
        raise ConfigError(
            f"tensor {entry.name} of the state has {array.max()}, which {dtype} does not hold"
        )
    return found


def _crosses(metadata: Metadata, layout: Layout) -> bool:
    return (
        metadata.get("framework", layout.framework) == layout.framework
        or layout.optimizer in CROSSING
    )


def _kind(code: str) -> str:
    """What is the same for all types in which the same may be held."""
    return "count" if TYPES.get(code) in COUNTS else code
