"""Which weights of a network no training step changes: what their layers say, not what they were
seen to do.

A weight that is not trained may well be changed by a step, such as the moving mean of a layer that
normalizes.
"""

from __future__ import annotations

from typing import Any

import keras


def frozen_weights(model: keras.Model) -> list[Any]:
    """Those of frozen layers, in the order of the model's weights."""
    frozen, others = set[int](), set[int]()
    for layer in model._flatten_layers():
        if _changing(layer):
            others.update(map(id, layer.variables))
        elif not layer.trainable:
            frozen.update(map(id, (*layer._trainable_variables, *layer._non_trainable_variables)))
    return [
        weight for weight in model.weights if id(weight) in frozen - others and not weight.trainable
    ]


def _changing(layer: Any) -> bool:
    """Whether a layer changes what it or one of its layers has, frozen or not: by norms, scales, or
    rows.
    """
    if isinstance(layer, keras.layers.SpectralNormalization) or getattr(layer, "stateful", False):
        return True
    return getattr(layer, "quantization_mode", None) is not None
