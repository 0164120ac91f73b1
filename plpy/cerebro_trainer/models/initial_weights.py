"""The weights that a seed gives, which configurations of a run may share: those of groups begin
from the same ones.

Keras draws them while it builds the model, some tens of milliseconds for a small one, which is as
long as a small group trains for an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy.typing as npt

from cerebro_trainer.models import keras_model
from cerebro_trainer.models.layer_arguments import Node

Array = npt.NDArray[Any]

MOST_BYTES = 64 * 2**20
"""Weights that take more are drawn again each time."""


class InitialWeights:
    """The weights of a model under seeds; from the second time that one seed is asked for they are
    kept.
    """

    def __init__(self, node: Node, value: Callable[[Any], Array]) -> None:
        """`value` gives that of a variable."""
        self._node, self._value = node, value
        self._seed: int | None = None
        self._kept: Sequence[Array] | None = None

    def of(self, seed: int) -> list[Array]:
        """Arrays of the caller's own, in the order of the model's variables."""
        if seed == self._seed and self._kept is not None:
            return [array.copy() for array in self._kept]
        with keras.device("cpu"):  # PyTorch draws others on a GPU
            drawn = [
                self._value(variable)
                for variable in keras_model.build_seeded(self._node, seed).variables
            ]
        again = seed == self._seed and sum(array.nbytes for array in drawn) <= MOST_BYTES
        self._seed, self._kept = seed, [array.copy() for array in drawn] if again else None
        return drawn
