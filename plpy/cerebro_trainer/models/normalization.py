"""Keras' Normalization, computed from its weights at every call.

Keras copies the weights of a Normalization when it is built or adapted, and computes with the
copies. But the weights of a program are assigned many times, are traced into compiled code, and
differ between configurations that share a program. Copies would always be those of a new layer:
mean 0 and variance 1.
"""

from __future__ import annotations

from typing import Any

import keras

Normalization = keras.layers.Normalization
_keras_call = Normalization.call


def install() -> None:
    """Replace the function that Keras calls for the layer."""
    Normalization.call = normalize


def normalize(layer: Any, inputs: Any) -> Any:
    """Return standardized inputs; in the steps of Keras, so that the bits are the same."""
    if layer.input_mean is not None:  # the config has the statistics
        return _keras_call(layer, inputs)
    ops = keras.ops
    dtype = layer.compute_dtype
    mean = ops.cast(ops.reshape(layer.adapt_mean, layer._broadcast_shape), dtype)
    variance = ops.cast(ops.reshape(layer.adapt_variance, layer._broadcast_shape), dtype)
    deviation = ops.maximum(ops.sqrt(variance), keras.config.epsilon())
    values = ops.cast(inputs, dtype)
    if layer.invert:
        return ops.add(mean, ops.multiply(values, deviation))
    return ops.divide(ops.subtract(values, mean), deviation)
