"""Event files for TensorBoard, written with TensorFlow's own summary writer.

Keras' callback works inside of `Model.fit` only, which is not how configs are trained here. It also
needs the package tensorboard. TensorBoard's plugins read tensors with certain metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

BUCKETS = 30


class EventFiles:
    """A `tensorboard.Board`; each call writes its own file, so no file stays open between jobs."""

    def __init__(self, folder: str, model: keras.Model, get_graph: Callable[[], Any]) -> None:
        self._folder = Path(folder)
        self._model = model
        self._get_graph = get_graph

    def write_scalars(self, kind: str, values: Mapping[str, float], step: int) -> None:
        with self._open_writer(kind):
            for name, value in values.items():
                _write_tensor("scalars", name, tf.constant(value, tf.float32), step)

    def write_histograms(self, step: int) -> None:
        with self._open_writer("train"):
            for weight in self._model.weights:
                buckets = _count_buckets(np.asarray(weight))
                _write_tensor("histograms", f"{weight.path}/histogram", buckets, step)

    def write_graph(self) -> None:
        with self._open_writer("train"):
            tf.summary.graph(self._get_graph())

    @contextmanager
    def _open_writer(self, kind: str) -> Iterator[None]:
        writer = tf.summary.create_file_writer(str(self._folder / kind))
        with writer.as_default():
            yield
        writer.close()


def _write_tensor(plugin: str, name: str, tensor: Any, step: int) -> None:
    metadata = tf.compat.v1.SummaryMetadata()
    metadata.plugin_data.plugin_name = plugin
    metadata.display_name = name
    tf.summary.write(name, tensor, step=step, metadata=metadata)


def _count_buckets(values: Any) -> Any:
    """Return rows of left edge, right edge and count; none if no value is finite."""
    finite = np.asarray(values, np.float64).ravel()
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return tf.zeros((0, 3), tf.float64)
    counts, edges = np.histogram(finite, bins=BUCKETS)
    return tf.constant(np.stack([edges[:-1], edges[1:], counts], axis=1), tf.float64)
