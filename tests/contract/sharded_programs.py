"""Programs whose shards a test chooses, in a process that has TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Arrays = list[tuple[str, np.ndarray]]


class Trained(NamedTuple):
    """What a program came to: its loss and state, sums of metrics, predictions; and how many pieces
    it has.
    """

    loss: float
    state: list[bytes]
    sums: list[list[float]]
    predictions: list[bytes]
    pieces: int


def trained(program: dict[str, Any], parts: Sequence[Arrays], most: int | None) -> Trained:
    """A program after two passes over buffers, in shards of so many pieces at most; None for one
    that has none.
    """
    from cerebro_trainer.data.buffers import Buffer
    from cerebro_trainer.models.program_spec import ProgramSpec
    from cerebro_trainer.programs.memory import MemoryBudget
    from cerebro_trainer.programs.sharded.program import ShardedProgram
    from cerebro_trainer.programs.tensorflow.program import TensorflowProgram

    spec = ProgramSpec.from_header({"program": program})
    made, pieces = TensorflowProgram(spec), 1
    if most is not None:
        made = sharded = ShardedProgram(spec, MemoryBudget())
        sharded.check(None)
        pieces = len(sharded.plan.shards)
        sharded.plan.set_peaks([0] * pieces, None)
        sharded.plan.shards = [range(n, min(n + most, pieces)) for n in range(0, pieces, most)]
    made.set_hyperparameters(spec)
    made.write(made.create_initial_state(1))
    buffers = []
    for number, arrays in enumerate(parts):
        x, y = (tuple(array for role, array in arrays if role == wanted) for wanted in "xy")
        buffers.append(Buffer(number, len(x[0]), x, y, 0))
    form, loss = made.modes[0], 0.0
    for buffer in buffers * 2:
        loss += made.train(buffer, np.arange(buffer.rows, dtype=np.int32)[::-1].copy(), 8, form)
    state = [np.array(value).tobytes() for value in made.read()]
    predictions = [array.tobytes() for array in made.predict(buffers[0].inputs)]
    return Trained(loss, state, made.evaluate(buffers[0]), predictions, pieces)
