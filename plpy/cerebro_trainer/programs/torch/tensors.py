"""NumPy arrays as tensors of PyTorch, and the error for memory that they lack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import keras
import numpy as np
import torch

from cerebro_trainer.wire.frames import Array

Tensors: TypeAlias = list[Any]


def to_tensor(array: Array) -> Any:
    """Return a copy in PyTorch's own memory layout, on which the last bits of sums depend."""
    return torch.tensor(array, device=keras.src.backend.torch.core.get_device())


def fill_tensor(tensor: Any, values: Array) -> None:
    """Set a tensor to values, which may be read-only."""
    with torch.no_grad():
        if tensor.device.type == "cpu":
            np.copyto(tensor.detach().numpy(), values)
        else:
            tensor.copy_(torch.tensor(values))


@contextmanager
def convert_memory_errors() -> Iterator[None]:
    """Raise MemoryError if the host lacks memory, for which PyTorch has no exception of its own."""
    try:
        yield
    except RuntimeError as error:
        _, separator, reason = str(error).partition("can't allocate memory: ")
        if separator:
            raise MemoryError(reason.partition(". ")[0]) from error
        raise
