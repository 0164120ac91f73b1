"""Random draws in what XLA compiles, from a generator that is named.

Keras leaves it to TensorFlow, and XLA then calculates the generator's key anew for each number that
is drawn: on a CPU a small network with Dropout takes ten times as long as without XLA. Named, it is
calculated once; the numbers are the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import tensorflow as tf

DRAWS = (
    (tf.random, "stateless_normal", "alg"),
    (tf.random, "stateless_truncated_normal", "alg"),
    (tf.random, "stateless_uniform", "alg"),
    (tf.nn.experimental, "stateless_dropout", "rng_alg"),
)
"""Functions by which Keras draws, and their arguments that name a generator."""


@contextmanager
def philox_draws() -> Iterator[None]:
    """Within a step that is traced, Keras draws from Philox, which TensorFlow would choose, too."""
    draws = [getattr(module, name) for module, name, _ in DRAWS]
    for (module, name, argument), draw in zip(DRAWS, draws, strict=True):
        setattr(module, name, partial(draw, **{argument: "philox"}))
    try:
        yield
    finally:
        for (module, name, _), draw in zip(DRAWS, draws, strict=True):
            setattr(module, name, draw)
