"""What the columns of a table mean to a model: how much worse it gets where one is shuffled; what
each adds to a row.

A column of a table may have become several inputs of the network, which belong together: they are
shuffled together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import raw_rows
from cerebro_trainer.data.buffer_merge import merge_buffers
from cerebro_trainer.data.buffers import Dataset, get_single_target
from cerebro_trainer.data.prediction_metrics import LOSSES
from cerebro_trainer.data.row_order import shuffle
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.programs.program import Attributions, ColumnPositions
from cerebro_trainer.wire.fields import integer, number, text, typed
from cerebro_trainer.wire.frames import Bytes

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Shuffling:
    """What is asked: the metric, the places of each column, and how often and by which seed each is
    shuffled.

    In so many `seconds`, or however long it takes.
    """

    metric: str
    columns: tuple[ColumnPositions, ...]
    classes: int
    repeats: int
    seed: int
    seconds: float

    @classmethod
    def from_header(cls, header: Mapping[str, Any], inputs: Sequence[Array]) -> Shuffling:
        """Read the fields of a request."""
        return cls(
            metric=text(header, "metric", choices=tuple(LOSSES)),
            columns=places(header, "columns", inputs),
            classes=integer(header, "classes", minimum=0),
            repeats=integer(header, "repeats", minimum=1),
            seed=integer(header, "seed"),
            seconds=math.inf if header.get("seconds") is None else number(header, "seconds"),
        )

    def losses(
        self, predict: Callable[[Sequence[Array]], Array], inputs: Sequence[Array], target: Array
    ) -> Iterator[list[float]]:
        """By how much the metric gets worse for each column, each time; none as of when the time is
        up.
        """
        ends = time.monotonic() + self.seconds
        before = self._loss(predict(inputs), target)
        for place, column in enumerate(self.columns):
            losses: list[float] = []
            while len(losses) < self.repeats and time.monotonic() < ends:
                order = shuffle((self.seed, place, len(losses)), len(target))
                losses.append(self._loss(predict(_moved(inputs, column, order)), target) - before)
            yield losses if len(losses) == self.repeats else []

    def _loss(self, outputs: Array, target: Array) -> float:
        values = outputs.reshape(len(outputs), -1).astype(np.float64)
        units = self.classes or 1
        if values.shape[1] != units:
            raise ConfigError(
                f"the model's output has {values.shape[1]} units; expected {units}",
                sqlstate="42804",
            )
        return LOSSES[self.metric](values, target)


def rows_and_target(
    header: Mapping[str, Any], payload: Bytes, datasets: Mapping[str, Dataset]
) -> tuple[Sequence[Array], Array]:
    """Return the inputs of rows and their targets: those of the `dataset` that is named, or the raw
    rows that came.
    """
    if "dataset" not in header:
        return raw_rows.decode_inputs_and_target(header, payload)
    dataset = datasets.get(text(header, "dataset"))
    if dataset is None or not dataset.is_complete or not dataset.buffers:
        raise RequestError(
            f"dataset {header['dataset']!r} has no rows that are kept", sqlstate="55000"
        )
    buffer = merge_buffers(dataset.buffers)
    return buffer.inputs, get_single_target(buffer)


def attribution_columns(found: Attributions) -> Iterator[str]:
    """The attributions of columns and patches, row by row; and beside each the gap of its row, but
    none of a patch.

    NULL for what is no number.
    """
    gaps = np.broadcast_to(found.gap[:, np.newaxis], found.values.shape)
    for values in ([found.values, found.patches], [gaps, np.full_like(found.patches, np.nan)]):
        flat = np.concatenate(values, axis=1).reshape(-1).tolist()
        yield (
            "{" + ",".join(repr(value) if math.isfinite(value) else "NULL" for value in flat) + "}"
        )


def places(
    header: Mapping[str, Any], field: str, inputs: Sequence[Array]
) -> tuple[ColumnPositions, ...]:
    """The places of columns, or of patches, in the inputs, which are arrays of rows."""
    found = typed(header, field, list)
    if not all(_fit(each, inputs) for each in found):
        raise RequestError(
            f'"{field}" must have positions in each of {len(inputs)} arrays; received {found!r}'[
                :300
            ]
        )
    return tuple(found)


def _fit(column: object, inputs: Sequence[Array]) -> bool:
    if not isinstance(column, list) or len(column) != len(inputs):
        return False
    pairs = zip(column, inputs, strict=True)
    return all(
        isinstance(part, list) and all(_inside(place, array) for place in part)
        for part, array in pairs
    )


def _inside(place: object, array: Array) -> bool:
    return type(place) is int and array.ndim > 1 and 0 <= place < array.shape[1]


def _moved(
    inputs: Sequence[Array], column: ColumnPositions, order: npt.NDArray[np.int32]
) -> list[Array]:
    """The inputs of rows of which each has this column of another row."""
    found = []
    for array, part in zip(inputs, column, strict=True):
        changed = array.copy() if part else array
        if part:
            changed[:, part] = array[order][:, part]
        found.append(changed)
    return found
