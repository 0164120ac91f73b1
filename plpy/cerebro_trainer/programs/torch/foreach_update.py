"""One step of an optimizer over all weights at once, which lie one behind another in memory.

PyTorch takes some microseconds for an operation, however small the tensors are, and an optimizer
has a dozen of them for each weight. Most treat each number by itself: then all weights, and all
slots of a kind, are one long tensor each, and Keras' own rule is computed over these. What Keras
knows as variables are views of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import torch
from keras.src.optimizers.base_optimizer import BaseOptimizer

ELEMENTWISE = frozenset(
    {"Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD"}
)
"""The optimizers of Keras that treat each number of a weight by itself."""


class FlatOptimizer:
    """An optimizer of Keras over weights in one piece; it shares its variables with the one that
    Keras knows.
    """

    def __init__(self, optimizer: Any, trained: Sequence[Any]) -> None:
        self._weights = _joined(trained)
        self.optimizer = optimizer = _copied(optimizer)
        self.variables = [self._weights]
        """What is long: all weights, and the slots of each kind."""
        for name, slots in list(vars(optimizer).items()):
            if _are_slots(slots, trained):
                joined = _joined(slots)
                self.variables.append(joined)
                object.__setattr__(optimizer, name, [joined])
        object.__setattr__(optimizer, "_trainable_variables", [self._weights])
        object.__setattr__(optimizer, "_trainable_variables_indices", {id(self._weights): 0})
        # PyTorch's own ways of these go through lists of tensors, and want numbers of Python where
        # ours are variables.
        rule = getattr(keras.optimizers, type(optimizer).__name__)
        object.__setattr__(
            optimizer, "_backend_update_step", partial(rule._backend_update_step, optimizer)
        )
        object.__setattr__(
            optimizer, "_apply_weight_decay", partial(BaseOptimizer._apply_weight_decay, optimizer)
        )

    def apply(self, gradients: Sequence[torch.Tensor]) -> None:
        """Take a step by the gradient of each weight."""
        self.optimizer.apply(
            [torch.cat([gradient.reshape(-1) for gradient in gradients])], [self._weights]
        )


def flat(optimizer: Any, trained: Sequence[Any]) -> FlatOptimizer | None:
    """Such an optimizer; None where its rule is of weights as they are, or is not to be traced."""
    fits = type(optimizer).__name__ in ELEMENTWISE and not (
        optimizer.clipnorm or optimizer.use_ema or optimizer.gradient_accumulation_steps
    )
    plain = all(variable.constraint is None and variable.dtype == "float32" for variable in trained)
    return FlatOptimizer(optimizer, trained) if trained and fits and plain else None


def _copied(optimizer: Any) -> Any:
    made = object.__new__(type(optimizer))
    vars(made).update(vars(optimizer))
    return made


def _are_slots(found: object, trained: Sequence[Any]) -> bool:
    return (
        isinstance(found, list)
        and len(found) == len(trained)
        and all(isinstance(slot, keras.Variable) for slot in found)
        and all(
            slot is not weight and slot.shape == weight.shape
            for slot, weight in zip(found, trained, strict=True)
        )
    )


def _joined(variables: Sequence[Any]) -> Any:
    """A variable in whose memory all of these are from now on."""
    values = [variable._value for variable in variables]
    joined = keras.Variable(
        torch.cat([value.detach().reshape(-1) for value in values]), trainable=False
    )
    begin = 0
    for value in values:
        value.data = joined._value.data[begin : begin + value.numel()].view(value.shape)
        begin += value.numel()
    return joined
