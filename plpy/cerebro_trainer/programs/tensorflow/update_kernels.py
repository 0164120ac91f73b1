"""Updates of Adam and SGD by one kernel of TensorFlow's for each variable, with the bits of Keras'
own on a CPU.

Keras writes an update as a dozen operations, each of which goes through memory: with small batches
that is a large part of a step. XLA makes one of them, but takes seconds to compile. The kernels are
those that tf.keras called; they calculate what Keras' formulas do, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

Update = Callable[[Any, Any, Any], None]


@contextmanager
def update_kernels(optimizer: Any) -> Iterator[None]:
    """Within a step that is traced, an optimizer of a class that has kernels uses them, for dense
    float32 gradients.
    """
    kernel = _kernel(optimizer)
    if kernel is None:
        yield
        return

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        dense = not isinstance(gradient, tf.IndexedSlices)
        if dense and gradient.dtype == variable.dtype == tf.float32:
            kernel(gradient, variable, _number(learning_rate))
        else:
            type(optimizer).update_step(optimizer, gradient, variable, learning_rate)

    object.__setattr__(optimizer, "update_step", update_step)
    try:
        yield
    finally:
        object.__delattr__(optimizer, "update_step")


def _kernel(optimizer: Any) -> Update | None:
    """The class itself decides: one that is derived from it may update in another way.

    With momentum SGD is left alone, because TensorFlow multiplies and subtracts in one operation
    there, to other bits than its kernel. What Adam's means decay by must be variables: of plain
    numbers Keras takes the difference to one before it rounds them.
    """
    betas = getattr(optimizer, "beta_1", None), getattr(optimizer, "beta_2", None)
    adam = (
        type(optimizer) in (keras.optimizers.Adam, keras.optimizers.AdamW) and not optimizer.amsgrad
    )
    if adam and all(isinstance(beta, keras.Variable) for beta in betas):
        return lambda *step: _adam(optimizer, *step)
    if type(optimizer) is keras.optimizers.SGD and not optimizer.momentums:
        return _sgd
    return None


def _adam(optimizer: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
    place, number = optimizer._get_variable_index(variable), _number(optimizer.iterations + 1)
    beta1, beta2 = _number(optimizer.beta_1), _number(optimizer.beta_2)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=optimizer._momentums[place].value.handle,
        v=optimizer._velocities[place].value.handle,
        beta1_power=tf.pow(beta1, number),
        beta2_power=tf.pow(beta2, number),
        lr=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=_number(optimizer.epsilon),
        grad=gradient,
    )


def _sgd(gradient: Any, variable: Any, learning_rate: Any) -> None:
    tf.raw_ops.ResourceApplyGradientDescent(
        var=variable.handle, alpha=learning_rate, delta=gradient
    )


def _number(value: Any) -> Any:
    return tf.cast(value.value if isinstance(value, keras.Variable) else value, tf.float32)
