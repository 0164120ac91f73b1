"""The job of a MADlib user, by MADlib's names and in its positional order: packed, configured,
trained.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from workbench import Workbench

Floats = npt.NDArray[np.float64]
CONSTANT, SEGMENTS, ITERATIONS, FREQUENCY = 2.0, 2, 2, 1
KEYS = (3, 40)
COMPILE = "metrics=['acc'] , optimizer='{}(lr={})', loss='categorical_crossentropy'"
# float32 sums of a small model in another order than the trainer's.
TOLERANCE = 1e-5


def build(bench: Workbench) -> None:
    """Make packed, packed_val, mst, and by training model, model_info and model_summary."""
    prepare(bench)
    bench.rows(
        "SELECT madlib_keras_fit_multiple_model('packed', 'model', 'mst', %s, FALSE, "
        "'packed_val', %s, FALSE, 'a name', 'a description', FALSE)",
        ITERATIONS,
        FREQUENCY,
    )


def prepare(bench: Workbench) -> None:
    """Make packed, packed_val, and mst."""
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'packed', 'label', 'x', 8, %s::real, "
        "n_segments => %s, seed => 7)",
        CONSTANT,
        SEGMENTS,
    )
    bench.rows("CREATE TABLE held_out AS SELECT * FROM points WHERE id % 4 = 0")
    bench.rows(
        "SELECT validation_preprocessor_dl('held_out', 'packed_val', 'label', 'x', 'packed')"
    )
    configure(bench, "mst", COMPILE.format("SGD", 0.05), COMPILE.format("Adam", 0.02))
    bench.rows("UPDATE mst SET mst_key = CASE mst_key WHEN 1 THEN %s ELSE %s END", *KEYS)


def configure(
    bench: Workbench, name: str, *compiles: str, fit: str = "batch_size=8,epochs=1", model: int = 1
) -> str:
    """A model selection table; its name."""
    return bench.configure(name, compiles, [fit], model)
