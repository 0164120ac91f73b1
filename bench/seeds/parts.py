"""Common parts of the peers with data parallelism, whose workers have a part of the rows each.

A model is a function of variables of TensorFlow, which the loops of these peers own. Keras' own
`fit` does not train on several machines.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.copying import read_table
from bench.job import Job
from bench.keras_config import Architectures, encode_one_hot, read_architectures, unflatten
from bench.seeds import files
from bench.seeds.curves import Point
from bench.workloads import Config

# The constants of Adam in Keras.
BETAS = (0.9, 0.999)
EPSILON = 1e-7
Arrays = tuple[Any, Any]


class WorkerData:
    """A worker's part of the training rows, the validation rows, and the architectures.

    The part consists of every n-th row, and is stored in a file of its own.
    """

    def __init__(self, job: Job, number: int, workers: int) -> None:
        session = job.connect()
        part = f"(SELECT id, x, y FROM {job.train} WHERE id % {workers} = {number}) part"
        train, valid = (read_table(session, table)[0] for table in (part, job.valid))
        self.architectures: Architectures = read_architectures(session, job.models)
        session.close()
        self.train = files.store_rows(job, number, train)
        self.valid = encode_one_hot(valid, job.classes)


def draw_batches(job: Job, number: int, epoch: int, rows: int) -> Any:
    """Return the rows of each batch of an epoch, drawn with a seed, shape (batches, batch size)."""
    batch_size = job.configs[number].batch_size
    order = np.random.default_rng((job.seed, number, epoch)).permutation(rows)[
        : rows // batch_size * batch_size
    ]
    return order.astype(np.int32).reshape(-1, batch_size)


class Network:
    """A configuration's model and optimizer; its variables are on the current device."""

    def __init__(self, keras: Any, architecture: tuple[str, bytes], config: Config) -> None:
        import tensorflow as tf

        self._tf = tf
        self._keras = keras
        self._rate = config.learning_rate
        self._model = keras.models.model_from_json(architecture[0])
        first = unflatten(architecture[1], [weight.shape for weight in self._model.weights])
        self.variables = [tf.Variable(array) for array in first]
        self._slots = [[tf.Variable(tf.zeros_like(array)) for array in first] for _ in BETAS]
        self._powers = [tf.Variable(1.0) for _ in BETAS]

    def gradients(self, x: Any, y: Any) -> list[Any]:
        """Return the gradients of a batch's loss with penalties."""
        with self._tf.GradientTape() as tape:
            loss = self._loss(x, y)[0]
        return list(tape.gradient(loss, self.variables))

    def apply(self, gradients: Sequence[Any]) -> None:
        """Apply gradients with a step of Adam (Kingma and Ba, 2015)."""
        for power, beta in zip(self._powers, BETAS, strict=True):
            power.assign(power * beta)
        powers = [power.read_value() for power in self._powers]
        for variable, gradient, *slots in zip(self.variables, gradients, *self._slots, strict=True):
            self._tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=slots[0].handle,
                v=slots[1].handle,
                beta1_power=powers[0],
                beta2_power=powers[1],
                lr=self._rate,
                beta1=BETAS[0],
                beta2=BETAS[1],
                epsilon=EPSILON,
                grad=gradient,
            )

    def point(self, valid: Arrays) -> Point:
        """Return the current loss and accuracy."""
        loss, predicted = self._loss(*valid)
        right = np.argmax(predicted, axis=1) == np.argmax(valid[1], axis=1)
        return Point(time.time(), float(loss), float(right.mean()))

    def _loss(self, x: Any, y: Any) -> tuple[Any, Any]:
        predicted, _, penalties = self._model.stateless_call(
            self.variables, [], x, return_losses=True
        )
        mean = self._tf.reduce_mean(self._keras.losses.categorical_crossentropy(y, predicted))
        return self._tf.add_n([mean, *penalties]), predicted
