"""TensorFlow as the framework of a trainer: set up once per process."""

from __future__ import annotations

from pathlib import Path

import keras
import tensorflow as tf

from cerebro_trainer.models.program_spec import ProgramSpec
from cerebro_trainer.programs.memory import MemoryBudget
from cerebro_trainer.programs.program import SHARDED, Framework, Program
from cerebro_trainer.programs.tensorflow.program import LargeNetwork, TensorflowProgram


def start(threads: int, cache: Path | None) -> Framework:
    """Set up TensorFlow for this process, so that the same work gives the same bits.

    Args:
        cache: unused. Traces cannot be stored. XLA finds its code again only in a process that has
            traced the same functions in the same order, whose numbers are part of the key. It also
            fails if a cache file is damaged or cannot be written.
    """
    tf.config.experimental.enable_op_determinism()
    tf.random.set_seed(0)  # else draws without a seed of their own are refused
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    devices = tuple(
        device.name.removeprefix("/device:") for device in tf.config.list_logical_devices()
    )
    return Framework(
        name="tensorflow",
        version=tf.__version__,
        keras_version=keras.__version__,
        devices=devices,
        threads=threads,
        make_program=_make_program,
        errors=(tf.errors.OpError,),
        memory_errors=(tf.errors.ResourceExhaustedError, MemoryError),
        describe_gpus=_describe_gpus,
    )


def _make_program(spec: ProgramSpec, budget: MemoryBudget) -> Program:
    """Return the program of a spec, in shards if it does not fit into memory as a whole."""
    if spec.cut is not None or budget.mode not in (None, SHARDED):
        return TensorflowProgram(spec)
    try:
        if budget.mode is None:
            return TensorflowProgram(spec, budget.remaining_bytes)
    except LargeNetwork:
        pass
    # Imported here, because few trainers need it.
    from cerebro_trainer.programs.sharded import program as sharded_program

    return sharded_program.make_program(spec, budget)


def _describe_gpus() -> tuple[str, ...]:
    descriptions = []
    for number, gpu in enumerate(tf.config.list_physical_devices("GPU")):
        details = tf.config.experimental.get_device_details(gpu)
        capability = ".".join(map(str, details.get("compute_capability", ())))
        descriptions.append(
            f"device: {number}, name: {details.get('device_name')}, compute capability: "
            f"{capability}"
        )
    return tuple(descriptions)
