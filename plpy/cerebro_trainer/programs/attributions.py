"""Attribution of a model's predictions to the columns of a row.

Integrated gradients (Sundararajan, Taly and Yan, 2017): the inputs change evenly from a baseline,
where all are 0, to the row itself. The attribution of a column is what it adds to the output on
this path. All attributions together are the difference of both outputs, apart from the error of
the numerical integral.

Pixels of a picture are too many to explain one by one, so patches of it are covered: occlusion
(Zeiler and Fergus, 2014, section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import keras
import numpy as np

from cerebro_trainer.models.differentiable import build_differentiable
from cerebro_trainer.models.layer_arguments import Node
from cerebro_trainer.programs.metrics import pack
from cerebro_trainer.programs.program import Array, Attributions, ColumnPositions

Gradient: TypeAlias = Callable[[list[Array], list[Array], Array], list[Array]]
"""Gradient of a model's output with regard to its first inputs.

Its arguments are the first inputs, the other inputs, and the weights of the units of each row. The
gradient of a row depends on this row alone.
"""

STEPS = 32
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(STEPS)
POINTS = tuple(zip(((_NODES + 1) / 2).tolist(), (_WEIGHTS / 2).tolist(), strict=True))
"""Points of a path from 0 to 1, with their weights in the integral (Gauss and Legendre)."""


@dataclass(frozen=True)
class IntegratedGradients:
    """A model whose predictions are explained.

    Index inputs, such as categories, have no gradient: the path leads through their embeddings.
    """

    embed: Callable[[Sequence[Array]], list[Array]] | None  # embeddings of the index inputs
    gradient: Gradient  # its first inputs are the continuous ones and the embeddings
    index_inputs: tuple[int, ...]
    continuous_inputs: tuple[int, ...]
    fixed_inputs: tuple[int, ...]  # index inputs that the model also uses without embedding them

    def compute_attributions(
        self, inputs: Sequence[Array], unit_weights: Array, columns: Sequence[ColumnPositions]
    ) -> Array:
        """Return the attribution of each column, shape (rows, columns)."""
        baseline = self._embed_inputs([np.zeros_like(array) for array in inputs])
        end = self._embed_inputs(inputs)
        changes = [after - before for before, after in zip(baseline, end, strict=True)]
        fixed = [inputs[position] for position in self.fixed_inputs]
        slopes = self._compute_mean_gradients(baseline, changes, fixed, unit_weights)
        embedding_slopes = slopes[len(self.continuous_inputs) :]
        embedding_baseline = baseline[len(self.continuous_inputs) :]
        attributions = np.zeros((len(unit_weights), len(columns)))
        for number, column in enumerate(columns):
            for slope, change, position in zip(
                slopes, changes, self.continuous_inputs, strict=False
            ):
                products = slope[:, column[position]] * change[:, column[position]]
                attributions[:, number] += _sum_rows(products)
            if self.embed is None or not any(column[position] for position in self.index_inputs):
                continue
            embeddings = self.embed(
                [_keep_only(inputs[position], column[position]) for position in self.index_inputs]
            )
            attributions[:, number] += sum(
                _sum_rows(slope * (after - before))
                for slope, after, before in zip(
                    embedding_slopes, embeddings, embedding_baseline, strict=True
                )
            )
        return attributions

    def _embed_inputs(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the continuous inputs, followed by the embeddings of the index inputs."""
        points = [inputs[position] for position in self.continuous_inputs]
        if self.embed is not None:
            points += self.embed([inputs[position] for position in self.index_inputs])
        return points

    def _compute_mean_gradients(
        self, baseline: list[Array], changes: list[Array], fixed: list[Array], unit_weights: Array
    ) -> list[Array]:
        """Return the mean gradients on the path from the baseline."""
        totals = [np.zeros(array.shape) for array in baseline]
        for point, weight in POINTS:
            points = [
                before + np.float32(point) * change
                for before, change in zip(baseline, changes, strict=True)
            ]
            gradients = self.gradient(points, fixed, unit_weights)
            for total, gradient in zip(totals, gradients, strict=True):
                total += weight * gradient
        return totals


class Explainer:
    """Explains the predictions of a model by a differentiable copy of it.

    Args:
        node: prepared architecture of the model.
        predict: returns the outputs of the model itself.
        compile_gradient: returns the gradient of a model with the same variables.
    """

    def __init__(
        self,
        node: Node,
        predict: Callable[[Sequence[Array]], list[Array]],
        compile_gradient: Callable[[keras.Model], Gradient],
    ) -> None:
        self._node = node
        self._predict = predict
        self._compile_gradient = compile_gradient
        self._model: keras.Model | None = None
        self._integral: IntegratedGradients | None = None

    @property
    def variables(self) -> list[Any]:
        """Variables of the differentiable copy; empty before the first explanation."""
        return [] if self._model is None else list(self._model.variables)

    def explain(
        self,
        variables: Sequence[Any],
        inputs: Sequence[Array],
        batch_size: int,
        columns: Sequence[ColumnPositions],
        patches: Sequence[ColumnPositions],
    ) -> Attributions:
        """Return attributions of the largest unit of each row.

        Args:
            variables: of the model that is explained, with its current values.
            batch_size: rows per call of the gradient.
        """
        rows = len(inputs[0])
        (output,) = self._predict(inputs)
        (blank,) = self._predict([np.zeros_like(array[:1]) for array in inputs])
        units = output.reshape(rows, -1).astype(np.float64)
        unit_weights = np.eye(units.shape[1], dtype=np.float32)[units.argmax(axis=1)]

        def measure_loss(other_output: Array) -> Array:
            """Return what the explained units lose by another output."""
            other_units = other_output.reshape(len(other_output), -1).astype(np.float64)
            return np.asarray(((units - other_units) * unit_weights).sum(axis=1))

        # Whole batches need only one compiled shape.
        padding = -rows % batch_size
        padded_inputs = [_append_zeros(array, padding) for array in inputs]
        padded_weights = _append_zeros(unit_weights, padding)
        integral = self._prepare(variables)
        parts = []
        for begin in range(0, rows, batch_size):
            batch = slice(begin, begin + batch_size)
            batch_inputs = [array[batch] for array in padded_inputs]
            parts.append(
                integral.compute_attributions(batch_inputs, padded_weights[batch], columns)
            )
        attributions = np.concatenate(parts)[:rows]
        losses = [measure_loss(*self._predict(cover_patch(inputs, patch))) for patch in patches]
        return Attributions(
            values=attributions,
            gap=attributions.sum(axis=1) - measure_loss(blank),
            patches=np.array(losses).reshape(-1, rows).T,
        )

    def _prepare(self, variables: Sequence[Any]) -> IntegratedGradients:
        """Return the integrated gradients of the model with these values; build it only once."""
        if self._model is None or self._integral is None:
            parts = build_differentiable(self._node)
            self._integral = IntegratedGradients(
                embed=None if parts.head is None else partial(_call_model, parts.head),
                gradient=self._compile_gradient(parts.tail),
                index_inputs=parts.integer_inputs,
                continuous_inputs=parts.float_inputs,
                fixed_inputs=parts.shared_inputs,
            )
            self._model = parts.model
        for variable, value in zip(self._model.variables, variables, strict=True):
            variable.assign(value)
        return self._integral


def cover_patch(inputs: Sequence[Array], patch: ColumnPositions) -> list[Array]:
    """Return the inputs with 0 at these positions."""
    covered_inputs = []
    for array, positions in zip(inputs, patch, strict=True):
        covered = array
        if positions:
            covered = array.copy()
            covered[:, positions] = 0
        covered_inputs.append(covered)
    return covered_inputs


def _keep_only(array: Array, positions: Sequence[int]) -> Array:
    """Return the rows with 0 at all positions but these."""
    result = np.zeros_like(array)
    result[:, positions] = array[:, positions]
    return result


def _append_zeros(rows: Array, count: int) -> Array:
    return np.concatenate([rows, np.zeros((count, *rows.shape[1:]), rows.dtype)])


def _call_model(model: keras.Model, inputs: Sequence[Array]) -> list[Array]:
    outputs = keras.tree.flatten(model(pack(list(inputs)), training=False))
    return [np.asarray(keras.ops.convert_to_numpy(array), np.float32) for array in outputs]


def _sum_rows(values: Array) -> Array:
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))
