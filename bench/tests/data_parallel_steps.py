"""Steps of the peers of the table of the seeds beside those of Keras; it runs in a process of its
own.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from bench.keras_config import build, encode_one_hot, flatten, prepare
from bench.seeds import parts, workload


def compare_with_keras(keras: Any, number: int) -> None:
    """Three steps of a configuration of the table, by a peer's loop and by Keras, come to the same
    within rounding.
    """
    config = workload.WORKLOAD.configs[number]
    text = workload.WORKLOAD.architectures[config.model - 1]
    first = flatten(keras.models.model_from_json(text).get_weights())
    model = build(keras, (text, first), config, {})
    network = parts.Network(keras, (text, first), config)
    x, y = encode_one_hot(workload.draw_training(np.random.default_rng(5), 64), 10)
    for _ in range(3):
        model.train_on_batch(x, y)
        network.apply(network.gradients(x, y))
    for ours, its in zip(network.variables, model.get_weights(), strict=True):
        np.testing.assert_allclose(ours.numpy(), its, rtol=1e-3, atol=1e-5)
    loss, accuracy = model.evaluate(x, y, verbose=0)
    point = network.point((x, y))
    assert point.loss == pytest.approx(loss, rel=1e-3)
    assert point.accuracy == pytest.approx(accuracy)


if __name__ == "__main__":
    keras_module = prepare("tensorflow")
    # Some initial weights have gradients near 0, whose signs rounding decides, and so Adam's steps.
    keras_module.utils.set_random_seed(5)
    for argument in sys.argv[1:]:
        compare_with_keras(keras_module, int(argument))
