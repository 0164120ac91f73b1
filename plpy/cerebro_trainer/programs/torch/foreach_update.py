"""One optimizer step over all weights at once, which share one block of memory.

PyTorch takes some microseconds for an operation, however small the tensors are, and an optimizer
has a dozen of them for each weight. Most optimizers treat each number by itself. All weights, and
all slots of a kind, can then be one long tensor each, and Keras' own rule is computed over these.
Keras' variables are views of them.
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
    """A copy of a Keras optimizer over flat weights; it shares the original one's variables."""

    def __init__(self, optimizer: Any, trained: Sequence[Any]) -> None:
        self._weights = _join_memory(trained)
        self.optimizer = _copy_optimizer(optimizer)
        self.variables = [self._weights]
        """The flat variables: all weights, and the slots of each kind."""
        for name, slots in list(vars(self.optimizer).items()):
            if _are_slots(slots, trained):
                flat_slots = _join_memory(slots)
                self.variables.append(flat_slots)
                self._set(name, [flat_slots])
        self._set("_trainable_variables", [self._weights])
        self._set("_trainable_variables_indices", {id(self._weights): 0})
        # PyTorch's own versions go through lists of tensors, and want Python numbers instead of
        # variables.
        rule = getattr(keras.optimizers, type(optimizer).__name__)
        self._set("_backend_update_step", partial(rule._backend_update_step, self.optimizer))
        self._set("_apply_weight_decay", partial(BaseOptimizer._apply_weight_decay, self.optimizer))

    def apply(self, gradients: Sequence[torch.Tensor]) -> None:
        """Take a step with the gradient of each weight."""
        flat_gradient = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self.optimizer.apply([flat_gradient], [self._weights])

    def _set(self, name: str, value: Any) -> None:
        """Set an attribute of the copy, without the tracking of Keras' own __setattr__."""
        object.__setattr__(self.optimizer, name, value)


def make_flat_optimizer(optimizer: Any, trained: Sequence[Any]) -> FlatOptimizer | None:
    """Return a flat copy of an optimizer; None if its rule needs whole weights or is not traceable.

    The rule must treat each number by itself, in float32 and without constraints.
    """
    if not trained or type(optimizer).__name__ not in ELEMENTWISE:
        return None
    if optimizer.clipnorm or optimizer.use_ema or optimizer.gradient_accumulation_steps:
        return None
    if any(variable.constraint is not None for variable in trained):
        return None
    if any(variable.dtype != "float32" for variable in trained):
        return None
    return FlatOptimizer(optimizer, trained)


def _copy_optimizer(optimizer: Any) -> Any:
    copy = object.__new__(type(optimizer))
    vars(copy).update(vars(optimizer))
    return copy


def _are_slots(value: object, trained: Sequence[Any]) -> bool:
    """Return whether an attribute of an optimizer is a list of one slot per weight."""
    if not isinstance(value, list) or len(value) != len(trained):
        return False
    if not all(isinstance(slot, keras.Variable) for slot in value):
        return False
    return all(
        slot is not weight and slot.shape == weight.shape
        for slot, weight in zip(value, trained, strict=True)
    )


def _join_memory(variables: Sequence[Any]) -> Any:
    """Return a flat variable, whose memory these variables use from now on."""
    values = [variable._value for variable in variables]
    flat_variable = keras.Variable(
        torch.cat([value.detach().reshape(-1) for value in values]), trainable=False
    )
    begin = 0
    for value in values:
        value.data = flat_variable._value.data[begin : begin + value.numel()].view(value.shape)
        begin += value.numel()
    return flat_variable
