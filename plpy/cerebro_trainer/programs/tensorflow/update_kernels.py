"""Updates of Adam and SGD by one TensorFlow kernel per variable, with the bits of Keras on a CPU.

Keras writes an update as a dozen operations, each of which goes through memory: with small batches
that is a large part of a step. XLA fuses them, but takes seconds to compile. These kernels are
those that tf.keras called; they compute Keras' formulas in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from cerebro_trainer.programs.keras_program import replace_method

Update: TypeAlias = Callable[[Any, Any, Any], None]
"""Takes a gradient, a variable and the learning rate."""


@contextmanager
def use_update_kernels(optimizer: Any) -> Iterator[None]:
    """Make an optimizer use its kernel, if it has one, while a step is traced.

    A kernel applies to dense float32 gradients only.
    """
    kernel = _find_kernel(optimizer)
    if kernel is None:
        yield
        return

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        is_dense = not isinstance(gradient, tf.IndexedSlices)
        if is_dense and gradient.dtype == variable.dtype == tf.float32:
            kernel(gradient, variable, _to_float32(learning_rate))
        else:
            type(optimizer).update_step(optimizer, gradient, variable, learning_rate)

    with replace_method(optimizer, "update_step", update_step):
        yield


def _find_kernel(optimizer: Any) -> Update | None:
    """Return the kernel of an optimizer's class; a derived class may update in another way.

    SGD with momentum has none: TensorFlow multiplies and subtracts in one operation there, with
    other bits than its kernel. The betas of Adam must be variables: Keras subtracts plain numbers
    from one before it rounds them.
    """
    if type(optimizer) is keras.optimizers.SGD and not optimizer.momentums:
        return _apply_sgd
    if type(optimizer) not in (keras.optimizers.Adam, keras.optimizers.AdamW):
        return None
    betas = (optimizer.beta_1, optimizer.beta_2)
    if optimizer.amsgrad or not all(isinstance(beta, keras.Variable) for beta in betas):
        return None
    return lambda *step: _apply_adam(optimizer, *step)


def _apply_adam(optimizer: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
    position = optimizer._get_variable_index(variable)
    step = _to_float32(optimizer.iterations + 1)
    beta1 = _to_float32(optimizer.beta_1)
    beta2 = _to_float32(optimizer.beta_2)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=optimizer._momentums[position].value.handle,
        v=optimizer._velocities[position].value.handle,
        beta1_power=tf.pow(beta1, step),
        beta2_power=tf.pow(beta2, step),
        lr=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=_to_float32(optimizer.epsilon),
        grad=gradient,
    )


def _apply_sgd(gradient: Any, variable: Any, learning_rate: Any) -> None:
    tf.raw_ops.ResourceApplyGradientDescent(
        var=variable.handle, alpha=learning_rate, delta=gradient
    )


def _to_float32(value: Any) -> Any:
    return tf.cast(value.value if isinstance(value, keras.Variable) else value, tf.float32)
