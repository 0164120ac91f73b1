"""Variables for the numbers in which the configs of one program differ.

The learning rate is not among them: Keras keeps it in a variable of the optimizer, which is part
of a state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from cerebro_trainer.models.hyperparameter_variables import (
    SCHEDULE_ARGUMENTS,
    Split,
    attach_regularizers,
)


class HyperparameterVariables:
    """The weights of regularizers and the numbers of the optimizer, as variables.

    Args:
        split: the numbers of one config, which become the first values.
        weights: variables whose regularizers get variables.
        optimizer: gets variables in place of its numbers.
    """

    def __init__(self, split: Split, weights: Sequence[Any], optimizer: Any) -> None:
        self._regularizers = [_make_variable(value) for value in split.regularizers]
        attach_regularizers(self._regularizers, weights)
        self._optimizer = _replace_numbers(optimizer, split.hyperparameters)
        self._values: list[float] = []

    @property
    def variables(self) -> list[Any]:
        """All variables, those of regularizers first."""
        return [*self._regularizers, *self._optimizer.values()]

    def set_values(self, split: Split) -> None:
        """Set the variables to the numbers of a config."""
        optimizer_values = [split.hyperparameters[name] for name in self._optimizer]
        values = [*split.regularizers, *optimizer_values]
        if values == self._values:
            return
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)
        self._values = values

    def discard_values(self) -> None:
        """Forget the current values: something else has changed the variables."""
        self._values = []


def _replace_numbers(optimizer: Any, numbers: Mapping[str, float]) -> dict[str, Any]:
    """Replace numbers of an optimizer by variables; return the variables by name."""
    variables = {
        name: _make_variable(value) for name, value in numbers.items() if name != "learning_rate"
    }
    for name, variable in variables.items():
        owner = optimizer._learning_rate if name in SCHEDULE_ARGUMENTS else optimizer
        # The optimizer's own __setattr__ would make the variable a part of its state.
        object.__setattr__(owner, name, variable)
    return variables


def _make_variable(value: float) -> Any:
    return keras.Variable(value, dtype="float32", trainable=False)
