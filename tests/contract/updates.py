"""Whether TensorFlow's kernels for updates give what Keras' own operations give, to the bit.

It runs where the framework does.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
from trainer_programs import dense, layer, program, sequential

NETWORK = sequential(
    [4],
    layer("Embedding", "embedded", input_dim=3, output_dim=5),  # its gradient is of some rows only
    layer("Flatten", "flat"),
    dense(33, "hidden", "tanh"),
    dense(3, "out", "softmax"),
)
BETAS = {"beta_1": 0.8, "beta_2": 0.95}
CHOSEN: dict[str, dict[str, Any]] = {
    "Adam": {"optimizer": "Adam", **BETAS},
    "Adam, clipped": {"optimizer": "Adam", **BETAS, "clipnorm": 0.01, "epsilon": 1e-4},
    "Adam, accumulated": {"optimizer": "Adam", **BETAS, "gradient_accumulation_steps": 2},
    "plain betas": {"optimizer": "Adam"},
    "AdamW": {"optimizer": "AdamW", **BETAS, "weight_decay": 0.1},
    "SGD": {"optimizer": "SGD"},
    "momentum": {
        "optimizer": "SGD",
        "momentum": 0.9,
        "clipvalue": 0.001,
        "use_ema": True,
        "ema_overwrite_frequency": 4,
    },
    "Nesterov": {"optimizer": "SGD", "momentum": 0.9, "nesterov": True},
    "amsgrad": {"optimizer": "Adam", **BETAS, "amsgrad": True},
    "RMSprop": {"optimizer": "RMSprop"},
}
WITHOUT = {"plain betas", "momentum", "Nesterov", "amsgrad", "RMSprop"}
"""Those take Keras' own steps, so that there is nothing to compare."""
UPDATES = "cerebro_trainer.programs.tensorflow.update_kernels"


def outcomes() -> dict[str, tuple[bool, bool]]:
    """Return for each name whether the bits are those of Keras' operations, and whether any
    variable has a kernel.
    """
    return {
        name: _untried(config) if name in WITHOUT else _outcome(config)
        for name, config in CHOSEN.items()
    }


def _untried(config: dict[str, Any]) -> tuple[bool, bool]:
    """Return whether a kernel is chosen for the optimizer of a program, without a step."""
    from cerebro_trainer.models.program_spec import ProgramSpec
    from cerebro_trainer.programs.tensorflow.program import TensorflowProgram

    made = TensorflowProgram(ProgramSpec.from_header({"program": program(NETWORK, **config)}))
    return True, import_module(UPDATES)._find_kernel(made._inner_optimizer) is not None


def _outcome(config: dict[str, Any]) -> tuple[bool, bool]:
    with ExitStack() as patches:
        kernels = [
            patches.enter_context(
                mock.patch(f"{UPDATES}.{name}", side_effect=getattr(import_module(UPDATES), name))
            )
            for name in ("_apply_adam", "_apply_sgd")
        ]
        found = trained(program(NETWORK, **config), "graph_loop")
    called = any(kernel.called for kernel in kernels)
    with mock.patch(
        "cerebro_trainer.programs.tensorflow.program.use_update_kernels", return_value=nullcontext()
    ):
        expected = trained(program(NETWORK, **config), "graph_loop")
    return found == expected, called


def trained(
    described: dict[str, Any], form: str, rows: int = 90, batch_size: int = 16
) -> list[bytes]:
    """The state of a program on TensorFlow after some epochs in a form."""
    from cerebro_trainer.data.buffers import Buffer
    from cerebro_trainer.models.program_spec import ProgramSpec
    from cerebro_trainer.programs.tensorflow.program import TensorflowProgram

    spec = ProgramSpec.from_header({"program": described})
    made, random = TensorflowProgram(spec), np.random.default_rng(5)
    made.write(made.create_initial_state(3))
    made.set_hyperparameters(spec)
    x = random.integers(0, 3, (rows, 4)).astype(np.float32)
    y = np.eye(3, dtype=np.int16)[random.integers(0, 3, rows)]
    for _ in range(3):
        made.train(
            Buffer(0, len(x), (x,), (y,), 0), np.arange(len(x), dtype=np.int32), batch_size, form
        )
    return [array.tobytes() for array in made.read()]
