"""Random draws in XLA's code from a generator that is named.

Keras leaves the choice to TensorFlow, and XLA then computes the generator's key anew for each
number. On a CPU a small network with Dropout takes ten times as long as without XLA. With a named
generator the key is computed once; the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import tensorflow as tf

FUNCTIONS = (
    (tf.random, "stateless_normal", "alg"),
    (tf.random, "stateless_truncated_normal", "alg"),
    (tf.random, "stateless_uniform", "alg"),
    (tf.nn.experimental, "stateless_dropout", "rng_alg"),
)
"""Functions by which Keras draws, each with its argument that names a generator."""


@contextmanager
def use_philox() -> Iterator[None]:
    """Make Keras draw from Philox while a step is traced; TensorFlow would choose it, too."""
    originals = [getattr(module, name) for module, name, _ in FUNCTIONS]
    for (module, name, argument), original in zip(FUNCTIONS, originals, strict=True):
        setattr(module, name, partial(original, **{argument: "philox"}))
    try:
        yield
    finally:
        for (module, name, _), original in zip(FUNCTIONS, originals, strict=True):
            setattr(module, name, original)
