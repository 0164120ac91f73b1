"""Weights that no training step changes, according to the settings of their layers.

A weight that is not trained may still be changed by a step, such as the moving mean of a layer that
normalizes.
"""

from __future__ import annotations

from typing import Any

import keras


def find_frozen_weights(model: keras.Model) -> list[Any]:
    """Return the weights of frozen layers, in the order of the model's weights."""
    frozen: set[int] = set()
    changing: set[int] = set()
    for layer in model._flatten_layers():
        if _changes_itself(layer):
            changing.update(map(id, layer.variables))
        elif not layer.trainable:
            variables = (*layer._trainable_variables, *layer._non_trainable_variables)
            frozen.update(map(id, variables))
    return [
        weight
        for weight in model.weights
        if id(weight) in frozen - changing and not weight.trainable
    ]


def _changes_itself(layer: Any) -> bool:
    """Return whether a layer changes variables, its own or its layers', even if it is frozen.

    Such variables are norms, states of rows, and quantization scales.
    """
    if isinstance(layer, keras.layers.SpectralNormalization) or getattr(layer, "stateful", False):
        return True
    return getattr(layer, "quantization_mode", None) is not None
