"""Attribution of a model's predictions to the columns of a row.

Integrated gradients (Sundararajan, Taly and Yan, 2017): the inputs change evenly from a baseline,
where all are 0, to the row itself. The attribution of a column is what it adds to the output on
this path. All attributions together are the difference of both outputs, apart from the error of
the numerical integral.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np

from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.models.differentiable import build_differentiable
from cerebro_trainer.models.keras_model import unwrap_single
from cerebro_trainer.models.layer_arguments import Node
from cerebro_trainer.programs.learner import Columns
from cerebro_trainer.wire.frames import Array, Arrays

Gradient: TypeAlias = Callable[[Arrays, Arrays, Array], list[Array]]
"""Gradient of a model's output with regard to its first inputs.

Its arguments are the first inputs, the other inputs, and the weights of the units of each row. The
gradient of a row depends on this row alone.
"""

STEPS = 32
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(STEPS)
POINTS = tuple(zip(((_NODES + 1) / 2).tolist(), (_WEIGHTS / 2).tolist(), strict=True))
"""Points of a path from 0 to 1, with their weights in the integral (Gauss and Legendre)."""


class IntegratedGradients:
    """Explanations of a model by a differentiable copy of it.

    Index inputs, such as categories, have no gradient: the path leads through their embeddings.

    Args:
        node: prepared architecture of the model.
        compile_gradient: returns the gradient of a model with the same variables.
    """

    def __init__(self, node: Node, compile_gradient: Callable[[keras.Model], Gradient]) -> None:
        parts = build_differentiable(node)
        self.variables: list[Any] = list(parts.model.variables)
        """Variables of the copy, which need the values of the model before `explain`."""
        self._embedding_model = parts.head
        self._gradient = compile_gradient(parts.tail)
        self._index_inputs = parts.integer_inputs
        self._continuous_inputs = parts.float_inputs
        self._fixed_inputs = parts.shared_inputs  # also used without an embedding

    def explain(
        self, inputs: Arrays, batch_size: int, columns: Columns, unit_weights: Floats
    ) -> Array:
        """Return the attributions of a weighted sum of units to columns, shape (rows, columns).

        Args:
            batch_size: rows per call of the gradient.
        """
        rows = len(inputs[0])
        # Whole batches need only one compiled shape.
        padding = -rows % batch_size
        padded_inputs = [_append_zeros(array, padding) for array in inputs]
        padded_weights = _append_zeros(unit_weights.astype(np.float32), padding)
        parts = []
        for begin in range(0, rows, batch_size):
            batch = slice(begin, begin + batch_size)
            batch_inputs = [array[batch] for array in padded_inputs]
            parts.append(self._attribute_batch(batch_inputs, padded_weights[batch], columns))
        return np.concatenate(parts)[:rows]

    def _attribute_batch(self, inputs: Arrays, unit_weights: Array, columns: Columns) -> Array:
        """Return the attribution of each column, shape (rows, columns)."""
        baseline = self._make_point([np.zeros_like(array) for array in inputs])
        end = self._make_point(inputs)
        changes = [after - before for before, after in zip(baseline, end, strict=True)]
        slopes = self._compute_mean_gradients(baseline, changes, inputs, unit_weights)
        count = len(self._continuous_inputs)
        attributions = np.zeros((len(unit_weights), len(columns)))
        for number, column in enumerate(columns):
            for slope, change, position in zip(
                slopes, changes, self._continuous_inputs, strict=False
            ):
                products = slope[:, column[position]] * change[:, column[position]]
                attributions[:, number] += _sum_rows(products)
            if self._embedding_model is None or not any(column[n] for n in self._index_inputs):
                continue
            embeddings = self._embed([_keep_only(inputs[n], column[n]) for n in self._index_inputs])
            attributions[:, number] += sum(
                _sum_rows(slope * (after - before))
                for slope, after, before in zip(
                    slopes[count:], embeddings, baseline[count:], strict=True
                )
            )
        return attributions

    def _make_point(self, inputs: Arrays) -> list[Array]:
        """Return the continuous inputs, followed by the embeddings of the index inputs."""
        embeddings = self._embed([inputs[position] for position in self._index_inputs])
        return [*(inputs[position] for position in self._continuous_inputs), *embeddings]

    def _embed(self, index_inputs: Arrays) -> list[Array]:
        if self._embedding_model is None:
            return []
        outputs = self._embedding_model(unwrap_single(index_inputs), training=False)
        arrays = map(keras.ops.convert_to_numpy, keras.tree.flatten(outputs))
        return [np.asarray(array, np.float32) for array in arrays]

    def _compute_mean_gradients(
        self,
        baseline: Arrays,
        changes: Arrays,
        inputs: Arrays,
        unit_weights: Array,
    ) -> list[Array]:
        """Return the mean gradients on the path from the baseline."""
        fixed = [inputs[position] for position in self._fixed_inputs]
        totals = [np.zeros(array.shape) for array in baseline]
        for point, weight in POINTS:
            points = [
                before + np.float32(point) * change
                for before, change in zip(baseline, changes, strict=True)
            ]
            gradients = self._gradient(points, fixed, unit_weights)
            for total, gradient in zip(totals, gradients, strict=True):
                total += weight * gradient
        return totals


def _keep_only(array: Array, positions: Sequence[int]) -> Array:
    """Return the rows with 0 at all positions but these."""
    result = np.zeros_like(array)
    result[:, positions] = array[:, positions]
    return result


def _append_zeros(rows: Array, count: int) -> Array:
    return np.concatenate([rows, np.zeros((count, *rows.shape[1:]), rows.dtype)])


def _sum_rows(values: Array) -> Array:
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))
