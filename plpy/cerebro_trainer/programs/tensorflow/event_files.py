"""Event files for TensorBoard, by TensorFlow's own summary writer.

Keras' callback would do this inside of `Model.fit`, which is not how configurations are trained
here, and with the package tensorboard, which a trainer does not need: what its plugins read are
tensors under their names.
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
    """See `callbacks.Board`; each call writes a file of its own, so that nothing is open between
    jobs.
    """

    def __init__(self, folder: str, model: keras.Model, graph: Callable[[], Any]) -> None:
        self._folder = Path(folder)
        self._model = model
        self._graph = graph

    def write_scalars(self, kind: str, values: Mapping[str, float], step: int) -> None:
        """Numbers of the training or the validation data."""
        with self._writing(kind):
            for name, value in values.items():
                _write("scalars", name, tf.constant(value, tf.float32), step)

    def write_histograms(self, step: int) -> None:
        """The weights as they now are."""
        with self._writing("train"):
            for weight in self._model.weights:
                _write("histograms", f"{weight.path}/histogram", _buckets(np.asarray(weight)), step)

    def write_graph(self) -> None:
        """The operations of a prediction."""
        with self._writing("train"):
            tf.summary.graph(self._graph())

    @contextmanager
    def _writing(self, kind: str) -> Iterator[None]:
        writer = tf.summary.create_file_writer(str(self._folder / kind))
        with writer.as_default():
            yield
        writer.close()


def _write(plugin: str, name: str, tensor: Any, step: int) -> None:
    metadata = tf.compat.v1.SummaryMetadata()
    metadata.plugin_data.plugin_name = plugin
    metadata.display_name = name
    tf.summary.write(name, tensor, step=step, metadata=metadata)


def _buckets(values: Any) -> Any:
    """Rows of left edge, right edge and count, as the plugin has them; no rows for no finite
    values.
    """
    finite = np.asarray(values, np.float64).ravel()
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return tf.zeros((0, 3), tf.float64)
    counts, edges = np.histogram(finite, bins=BUCKETS)
    return tf.constant(np.stack([edges[:-1], edges[1:], counts], axis=1), tf.float64)
