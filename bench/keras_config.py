"""Build, train and evaluate one configuration with plain Keras, as a user would."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from psycopg2.extensions import connection as Connection

from bench.copying import read_table
from bench.examples import Examples
from bench.job import Job
from bench.workloads import Config

EVALUATION_BATCH = 1024
Architectures = list[tuple[str, bytes]]


def prepare(framework: str, cores: list[int] | None = None) -> Any:
    """Import Keras with a framework, with as many threads as cores.

    Args:
        cores: bind the process to these cores.
    """
    if cores is not None:
        os.sched_setaffinity(0, cores)
    os.environ.update(
        {"KERAS_BACKEND": framework, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    )
    import keras

    if framework == "tensorflow":
        import tensorflow as tf

        threads = len(os.sched_getaffinity(0))
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    return keras


def read(job: Job) -> tuple[tuple[Examples, Examples], Architectures, int]:
    """Return the training and validation rows, the architectures, and the number of bytes read."""
    session = job.connect()
    train, train_bytes = read_table(session, job.train)
    valid, valid_bytes = read_table(session, job.valid)
    architectures = read_architectures(session, job.models)
    session.close()
    return (train, valid), architectures, train_bytes + valid_bytes


def read_architectures(session: Connection, table: str) -> Architectures:
    """Return JSON and flat float32 weights of the architectures, in order."""
    with session.cursor() as cursor:
        cursor.execute(f"SELECT model_arch::text, model_weights FROM {table} ORDER BY model_id")
        return [(text, bytes(flat)) for text, flat in cursor.fetchall()]


def encode_one_hot(examples: Examples, classes: int) -> tuple[Any, Any]:
    """Return inputs and one-hot targets."""
    x, y = examples
    return x, np.eye(classes, dtype=np.float32)[y]


def build(
    keras: Any, architecture: tuple[str, bytes], config: Config, settings: Mapping[str, Any]
) -> Any:
    """Return a compiled model with its initial weights."""
    model = keras.models.model_from_json(architecture[0])
    model.set_weights(unflatten(architecture[1], [weight.shape for weight in model.weights]))
    optimizer = {"class_name": config.optimizer, "config": {"learning_rate": config.learning_rate}}
    model.compile(
        optimizer=keras.optimizers.get(optimizer),
        loss="categorical_crossentropy",
        metrics=["accuracy"],
        **settings,
    )
    return model


def unflatten(flat: bytes, shapes: list[Any]) -> list[Any]:
    """Return arrays of shapes from their concatenated elements."""
    values = np.frombuffer(flat, "<f4")
    arrays = []
    begin = 0
    for shape in shapes:
        size = int(np.prod(shape))
        arrays.append(values[begin : begin + size].reshape(shape))
        begin += size
    return arrays


def flatten(arrays: list[Any]) -> bytes:
    """Return the concatenated elements of arrays."""
    return b"".join(np.asarray(array, "<f4").tobytes() for array in arrays)


def evaluate(model: Any, valid: tuple[Any, Any]) -> tuple[float, float]:
    """Return loss and accuracy."""
    loss, accuracy = model.evaluate(*valid, batch_size=EVALUATION_BATCH, verbose=0)
    return float(loss), float(accuracy)
