"""How often a program is traced for buffers of several lengths and learning rates; runs where the framework does."""

from __future__ import annotations

from typing import Any

import numpy as np
from trainer_programs import buffers, program

EXPECTED = {"tensorflow": (1, 1), "jax": (2, 1, 3)}


def tensorflow() -> tuple[int, int]:
    """Traces of the training loop and of evaluation."""
    from cerebro_trainer.programs.tensorflow_program import TensorflowProgram

    made = TensorflowProgram(_spec(0.01))
    for rows, batch_size, rate in ((20, 4, 0.1), (33, 7, 0.2), (5, 64, 0.3)):
        _use(made, rows, batch_size, rate, "graph_loop")
    return made._train[1].experimental_get_tracing_count(), made._evaluate.experimental_get_tracing_count()


def jax() -> tuple[int, int, int]:
    """Compilations of the step (for full and last batches), of the loop and of evaluation (three parts)."""
    from cerebro_trainer.programs.jax_program import JaxProgram

    made: Any = JaxProgram(_spec(0.01))
    for rows, batch_size, rate in ((301, 4, 0.1), (305, 4, 0.2), (317, 4, 0.3)):
        for form in ("scan", "jit_step"):
            _use(made, rows, batch_size, rate, form)
    return made._train["jit_step"]._cache_size(), made._train["scan"]._cache_size(), made._evaluate._cache_size()


def _spec(rate: float) -> Any:
    from cerebro_trainer.models.program_spec import ProgramSpec

    return ProgramSpec.from_header({"program": program(learning_rate=rate)})


def _use(made: Any, rows: int, batch_size: int, rate: float, form: str) -> None:
    from cerebro_trainer.data.buffers import Buffer

    x, y = (array for _, array in buffers(rows)[0])
    buffer = Buffer(0, rows, (x,), (y,), 0)
    made.set_numbers(_spec(rate))
    made.train(buffer, np.arange(rows, dtype=np.int32), batch_size, form)
    made.evaluate(buffer)
