"""Whether what XLA draws from the generator that is named are the numbers that it draws by itself.

It runs where the framework does.
"""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from unittest import mock

from trainer_programs import dense, layer, program, sequential
from updates import trained

NETWORK = sequential(
    [4],
    layer("GaussianNoise", "noise", stddev=0.1),
    dense(9, "hidden", "tanh"),
    layer("Dropout", "drop", rate=0.2),
    layer("GaussianDropout", "factors", rate=0.2),
    layer("AlphaDropout", "alpha", rate=0.2),
    layer("Reshape", "pairs", target_shape=[3, 3]),
    layer("SpatialDropout1D", "channels", rate=0.2),
    layer("Flatten", "flat"),
    dense(3, "out", "softmax"),
)
DRAWS = 5
"""Layers that draw."""
KEYS = "tensorflow.python.ops.gen_stateless_random_ops_v2"


def outcome() -> tuple[bool, int]:
    """Whether both states have the same bits, and for how many draws TensorFlow calculates no
    key.
    """
    state, keys = _trained()
    with mock.patch(
        "cerebro_trainer.programs.tensorflow.program.use_philox", side_effect=nullcontext
    ):
        expected, by_itself = _trained()
    return state == expected, by_itself - keys


def _trained() -> tuple[list[bytes], int]:
    name = "stateless_random_get_key_counter"
    with mock.patch(f"{KEYS}.{name}", side_effect=getattr(import_module(KEYS), name)) as key:
        return trained(program(NETWORK), "xla_loop", 50, 10), key.call_count
