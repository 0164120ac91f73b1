"""How often a program is traced for buffers of several lengths and learning rates, and what it asks
meanwhile.

It runs where the framework does.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from trainer_programs import NOISY, buffers, program

FALLBACK = "keras_fit"
OWN = "import keras\n\n\ndef own(a, b):\n    return keras.losses.categorical_crossentropy(a, b)\n"
CUSTOM: dict[str, Any] = {"loss": "own", "sources": {"own": OWN}}
RATES = {"tensorflow": 1, "jax": 1, "torch": 2}
"""PyTorch takes a step before it traces one."""
EXPECTED = {"tensorflow": (1, 1), "jax": (3, 1, 3), "torch": 2}


def tensorflow() -> tuple[int, int]:
    """Traces of the training loop and of evaluation."""
    made = _program("tensorflow")
    for rows, batch_size, rate in ((20, 4, 0.1), (33, 7, 0.2), (5, 64, 0.3)):
        _use(made, rows, batch_size, rate, "graph_loop")
    return made._train[
        1
    ].experimental_get_tracing_count(), made._evaluate.experimental_get_tracing_count()


def jax() -> tuple[int, int, int]:
    """Traces of the step (for full and last batches, and once in the loop), of the loop and of
    evaluation (three parts)."""
    from cerebro_trainer.programs.jax.program import JaxProgram

    with ExitStack() as patches:
        counted = [
            patches.enter_context(
                mock.patch.object(
                    JaxProgram, name, autospec=True, side_effect=getattr(JaxProgram, name)
                )
            )
            for name in ("_step", "_loop", "_evaluate_batch")
        ]
        made = _program("jax")
        for rows, batch_size, rate in ((301, 4, 0.1), (305, 4, 0.2), (317, 4, 0.3)):
            for form in ("scan", "jit_step"):
                _use(made, rows, batch_size, rate, form)
    step, loop, evaluation = (each.call_count for each in counted)
    return step, loop, evaluation


def torch() -> int:
    """Traces of the step, for each size of batches one."""
    from cerebro_trainer.programs.torch import graph

    with mock.patch(
        "cerebro_trainer.programs.torch.program.trace_step", side_effect=graph.trace_step
    ) as counted:
        made = _program("torch")
        for rows, batch_size, rate in ((20, 4, 0.1), (33, 4, 0.2), (33, 7, 0.3), (5, 64, 0.4)):
            _use(made, rows, batch_size, rate, "graph")
    return counted.call_count


TRACED = ("_step", "_block", "_loop", "_evaluate_batch", "_outputs")


def found(folder: str) -> list[tuple[int, bool]]:
    """Of several programs of processes that share a folder, how often their functions are traced,
    and whether they come to what the first one came to: one like the first; one that JAX fails to
    load; one with a custom function."""
    from jax.experimental import serialize_executable

    refused = mock.patch.object(
        serialize_executable, "deserialize_and_load", side_effect=ValueError
    )
    # As if each had begun: which libraries there are is asked once.
    newer = mock.patch(
        "cerebro_trainer.programs.jax.compiled_code.describe_environment", return_value="another"
    )
    outcomes = []
    usual = nullcontext()
    for around in (usual, usual, refused, newer, newer):
        with around:
            outcomes.append(_outcome(folder))
    outcomes += [_outcome(folder, **CUSTOM) for _ in range(2)]
    first = outcomes[0][1]
    return [(count, values == first) for count, values in outcomes]


def _outcome(folder: str, loss: str = "categorical_crossentropy", **more: Any) -> tuple[int, Any]:
    """How often a new program traces its functions, and what it comes to."""
    from cerebro_trainer.programs.jax.compiled_code import Entries, FunctionCache
    from cerebro_trainer.programs.jax.program import JaxProgram

    with ExitStack() as patches:
        counted = [
            patches.enter_context(
                mock.patch.object(
                    JaxProgram, name, autospec=True, side_effect=getattr(JaxProgram, name)
                )
            )
            for name in TRACED
        ]
        made = JaxProgram(_spec(program(loss=loss) | more), FunctionCache(Entries(Path(folder))))
        made.write(made.create_initial_state(3))
        for form in made.modes:
            buffer = _train(made, 81, 4, form)
        sums, outputs = made.evaluate(buffer), made.predict(buffer.inputs)
    values = [array.tobytes() for array in [*made.read(), *outputs]]
    return sum(each.call_count for each in counted), (values, sums)


def spared(folder: str) -> list[float]:
    """Seconds of compiling that are spared a program that finds nothing, and one that finds its
    functions.
    """
    from cerebro_trainer.programs.jax.compiled_code import Entries, FunctionCache
    from cerebro_trainer.programs.jax.program import JaxProgram

    seconds = []
    for _ in range(2):
        made = JaxProgram(_spec(program()), FunctionCache(Entries(Path(folder))))
        _train(made, 8, 4, "scan")
        seconds += [made.take_saved_compile_seconds(), made.take_saved_compile_seconds()]
    return seconds


def rates(framework: str) -> int:
    """How often the training loop, while it is traced, asks a schedule for the learning rate."""
    from keras.optimizers.schedules import CosineDecay

    schedule = {"initial_learning_rate": 0.1, "decay_steps": 5}
    named = {
        "module": "keras.optimizers.schedules",
        "class_name": "CosineDecay",
        "config": schedule,
    }
    with mock.patch.object(
        CosineDecay, "__call__", autospec=True, side_effect=CosineDecay.__call__
    ) as call:
        made = _program(framework, optimizer="AdamW", learning_rate=named, weight_decay=0.1)
        _train(made, 8, 4, made.modes[0])
    return call.call_count


def wiped(framework: str) -> list[str]:
    """What is no zero of a program that has trained, in Keras' own loop too, evaluated and
    explained, and was wiped.
    """
    made = _program(framework, architecture=NOISY, momentum=0.5, optimizer="SGD")
    _use(made, 40, 8, 0.1, made.modes[0])
    _train(made, 40, 8, FALLBACK)
    rows = np.ones((3, 4), np.float32)
    (outputs,) = made.predict([rows])
    made.attribute([rows], [[[0]], [[1, 2, 3]]], np.ones_like(outputs))
    made.wipe()
    seen = [
        *made.variables,
        *made.hyperparameters.variables,
        *made.metrics.variables,
        *made.model.metrics_variables,
    ]
    seen += made.explanation.variables
    left = [variable.path for variable in seen if np.asarray(variable).any()]
    return left + ([] if made.model.history is None else ["history"])


def seeded(framework: str) -> bool:
    """Whether initial weights and generators are those that Keras gives under the same seed."""
    import keras

    made = _program(framework, architecture=NOISY)
    for seed in (3, 4):
        keras.utils.set_random_seed(seed)
        expected = keras.saving.deserialize_keras_object(NOISY).variables
        found = made.create_initial_state(seed)
        if not all(
            np.array_equal(ours, np.asarray(theirs))
            for ours, theirs in zip(found, expected, strict=False)
        ):
            return False
    return True


def prepared_anew() -> int:
    """How often TensorFlow forgets the graphs that it has prepared, of which each takes it a tenth
    of a second.
    """
    made = _program("tensorflow", architecture=NOISY)
    with mock.patch("tensorflow.python.eager.context.pywrap_tfe.TFE_ContextClearCaches") as forget:
        for seed in (1, 2):
            made.write(made.create_initial_state(seed))
            _use(made, 20, 8, 0.1, made.modes[0])
    return forget.call_count


def renewed(framework: str) -> bool:
    """Whether a program with weights that were read alone is as one that began with the whole
    state.
    """
    made = _program(framework, architecture=NOISY)
    for seed in (1, 1, 2):
        expected = made.create_initial_state(seed)
        _use(made, 20, 8, 0.1, made.modes[0])
        made.reset_non_weights(seed)
        for place in made.layout.weights:
            made.assign(place, expected[place])
        if not all(map(np.array_equal, made.read(), expected)):
            return False
    return True


def _program(framework: str, **config: Any) -> Any:
    kind = {"tensorflow": "TensorflowProgram", "jax": "JaxProgram", "torch": "TorchProgram"}[
        framework
    ]
    module = import_module(f"cerebro_trainer.programs.{framework}.program")
    return getattr(module, kind)(_spec(program(**config)))


def _spec(described: dict[str, Any]) -> Any:
    from cerebro_trainer.models.program_spec import ProgramSpec

    return ProgramSpec.from_header({"program": described})


def _use(made: Any, rows: int, batch_size: int, rate: float, form: str) -> None:
    made.set_hyperparameters(_spec(program(learning_rate=rate)))
    made.evaluate(_train(made, rows, batch_size, form))


def _train(made: Any, rows: int, batch_size: int, form: str) -> Any:
    """Train on a buffer, which is returned."""
    from cerebro_trainer.data.buffers import Buffer

    x, y = (array for _, array in buffers(rows)[0])
    buffer = Buffer(0, rows, (x,), (y,), 0)
    made.train(buffer, np.arange(rows, dtype=np.int32), batch_size, form)
    return buffer
