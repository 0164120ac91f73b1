"""The influence of a table's columns: permutation importance, and attributions of predictions.

A column of a table may have become several inputs of the network. They belong together and are
permuted together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cerebro_trainer.commands.predictions import check_units
from cerebro_trainer.data import raw_rows
from cerebro_trainer.data.buffer_merge import merge_buffers
from cerebro_trainer.data.buffers import Dataset, get_single_target
from cerebro_trainer.data.prediction_metrics import LOSSES
from cerebro_trainer.data.row_order import Rows, shuffle
from cerebro_trainer.errors import RequestError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs.learner import Attributions, ColumnPositions
from cerebro_trainer.wire.fields import Header, integer, number, text, typed
from cerebro_trainer.wire.frames import Array, Arrays, Bytes


@dataclass(frozen=True)
class PermutationRequest:
    """A request for the permutation importance of columns."""

    metric: str
    columns: tuple[ColumnPositions, ...]
    classes: int  # 0 for regression
    repeats: int  # permutations of each column
    seed: int
    seconds: float  # time limit; infinite for none

    @classmethod
    def from_header(cls, header: Header, inputs: Arrays) -> PermutationRequest:
        """Read the fields of a request."""
        return cls(
            metric=text(header, "metric", choices=tuple(LOSSES)),
            columns=read_positions(header, "columns", inputs),
            classes=integer(header, "classes", minimum=0),
            repeats=integer(header, "repeats", minimum=1),
            seed=integer(header, "seed"),
            seconds=math.inf if header.get("seconds") is None else number(header, "seconds"),
        )

    def compute_losses(
        self, predict: Callable[[Arrays], Array], inputs: Arrays, target: Array
    ) -> Iterator[list[float]]:
        """Yield by how much the metric gets worse in each permutation of a column, by column.

        The list is empty for a column that is not finished within the time limit.
        """
        deadline = time.monotonic() + self.seconds
        baseline = self._compute_loss(predict(inputs), target)
        for index, column in enumerate(self.columns):
            losses: list[float] = []
            while len(losses) < self.repeats and time.monotonic() < deadline:
                order = shuffle((self.seed, index, len(losses)), len(target))
                outputs = predict(_permute_column(inputs, column, order))
                losses.append(self._compute_loss(outputs, target) - baseline)
            yield losses if len(losses) == self.repeats else []

    def _compute_loss(self, outputs: Array, target: Array) -> float:
        values = outputs.reshape(len(outputs), -1).astype(np.float64)
        check_units(values.shape[1], self.classes or 1)
        return LOSSES[self.metric](values, target)


def read_rows_and_target(
    header: Header, payload: Bytes, datasets: Mapping[str, Dataset]
) -> tuple[Arrays, Array]:
    """Return the inputs and the targets of rows: of a cached `dataset`, or of the payload."""
    if "dataset" not in header:
        return raw_rows.decode_inputs_and_target(header, payload)
    dataset = datasets.get(text(header, "dataset"))
    if dataset is None or not dataset.is_complete or not dataset.buffers:
        raise RequestError(
            f"dataset {header['dataset']!r} has no rows that are kept", sqlstate="55000"
        )
    buffer = merge_buffers(dataset.buffers)
    return buffer.inputs, get_single_target(buffer)


def format_attributions(attributions: Attributions) -> Iterator[str]:
    """Yield two array literals, row by row: the attributions, and the gap of their rows.

    Columns come first in a row, then patches, which have no gap. Values that are not finite numbers
    become NULL.
    """
    gaps = np.broadcast_to(attributions.gap[:, np.newaxis], attributions.values.shape)
    patch_gaps = np.full_like(attributions.patches, np.nan)
    for values in ([attributions.values, attributions.patches], [gaps, patch_gaps]):
        flat = np.concatenate(values, axis=1).reshape(-1).tolist()
        elements = [repr(value) if math.isfinite(value) else "NULL" for value in flat]
        yield "{" + ",".join(elements) + "}"


def read_positions(header: Header, field: str, inputs: Arrays) -> tuple[ColumnPositions, ...]:
    """Read the positions of columns, or of patches, in the input arrays."""
    positions = typed(header, field, list)
    if not all(_are_positions(column, inputs) for column in positions):
        expected = f'"{field}" must have positions in each of {count_nouns(len(inputs), "array")}'
        raise RequestError(f"{expected}; received {positions!r}"[:300])
    return tuple(positions)


def _are_positions(column: object, inputs: Arrays) -> bool:
    if not isinstance(column, list) or len(column) != len(inputs):
        return False
    return all(
        isinstance(positions, list) and all(_is_position(p, array) for p in positions)
        for positions, array in zip(column, inputs, strict=True)
    )


def _is_position(position: object, array: Array) -> bool:
    return type(position) is int and array.ndim > 1 and 0 <= position < array.shape[1]


def _permute_column(inputs: Arrays, column: ColumnPositions, order: Rows) -> list[Array]:
    """Return the inputs of rows in which a column has the values of other rows."""
    permuted_inputs = []
    for array, positions in zip(inputs, column, strict=True):
        permuted = array
        if positions:
            permuted = array.copy()
            permuted[:, positions] = array[order][:, positions]
        permuted_inputs.append(permuted)
    return permuted_inputs
