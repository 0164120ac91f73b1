"""Arrays of numpy as PyTorch's tensors, and how it says that there is no memory for one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import torch

from cerebro_trainer.programs.program import Array


def tensor(array: Array) -> Any:
    """A copy, which lies as PyTorch's own tensors do: on that depend the last bits of sums."""
    return torch.tensor(array, device=keras.src.backend.torch.core.get_device())


def fill(place: Any, value: Array) -> None:
    """Set a tensor to values, which may be read-only."""
    with torch.no_grad():
        if place.device.type == "cpu":
            np.copyto(place.detach().numpy(), value)
        else:
            place.copy_(torch.tensor(value))


@contextmanager
def out_of_memory() -> Iterator[None]:
    """PyTorch says it by an error of any kind on the host."""
    try:
        yield
    except RuntimeError as error:
        _, refused, asked = str(error).partition("can't allocate memory: ")
        if refused:
            raise MemoryError(asked.partition(". ")[0]) from error
        raise
