"""The rows of a prediction table, computed from a model's outputs.

Numbers are float64, so that a probability is shown with all of its digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cerebro_trainer.data import arrays
from cerebro_trainer.data.arrays import Booleans, Floats, Integers
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.fields import Header, integer, number, record, text
from cerebro_trainer.wire.frames import Array, Arrays, Messages, reply


@dataclass(frozen=True, kw_only=True)
class ClassSelection:
    """The classes of a row to report."""

    kind: str  # "prob": all; "response": the best; "top": the n best; "threshold": those above it
    n: int = 1
    threshold: float = 0.0

    @classmethod
    def from_header(cls, header: Header) -> ClassSelection:
        """Read the object `want` of a request."""
        want = record(header, "want")
        kind = text(want, "kind", choices=("prob", "response", "top", "threshold"))
        if kind == "top":
            return cls(kind=kind, n=integer(want, "n", minimum=1))
        if kind == "threshold":
            return cls(kind=kind, threshold=number(want, "threshold"))
        return cls(kind=kind)


@dataclass(frozen=True)
class PredictionTable:
    """Predictions as columns of equal length."""

    row: Integers  # from 1
    output: Integers  # from 0
    label: Integers  # class index, from 0
    value: Floats
    rank: Integers  # from 1

    def to_header(self) -> dict[str, str]:
        """Return the columns as PostgreSQL array literals."""
        columns = {
            "row": self.row,
            "output": self.output,
            "class": self.label,
            "value": self.value,
            "rank": self.rank,
        }
        return {name: arrays.format_literal(column.tolist()) for name, column in columns.items()}


COLUMNS = tuple(PredictionTable.__dataclass_fields__)


def tabulate(
    outputs: Arrays, classes: Sequence[int | None], selection: ClassSelection
) -> PredictionTable:
    """Return the predictions of all outputs, sorted by row, output and rank.

    Args:
        outputs: arrays of shape (rows, units, ...).
        classes: number of classes of each output; None if each unit is a class, and 0 for float
            targets, of which all units are reported in their order.
    """
    if len(outputs) != len(classes):
        raise ConfigError(
            f"the model has {count_nouns(len(outputs), 'output')}, but there are "
            f"{count_nouns(len(classes), 'dependent column')}"
        )
    tables = [
        _tabulate_output(index, output, count, selection)
        for index, (output, count) in enumerate(zip(outputs, classes, strict=True))
    ]
    columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in COLUMNS}
    order = np.lexsort((columns["rank"], columns["output"], columns["row"]))
    return PredictionTable(**{name: column[order] for name, column in columns.items()})


def _tabulate_output(
    index: int, output: Array, classes: int | None, selection: ClassSelection
) -> PredictionTable:
    values = output.astype(np.float64).reshape(len(output), -1)
    if classes == 0:
        rank = np.broadcast_to(np.arange(1, values.shape[1] + 1), values.shape)
        is_selected = np.ones(values.shape, dtype=np.bool_)
    else:
        if classes is not None:
            values = _select_probabilities(values, classes)
        rank = rank_classes(values)
        is_selected = _select_classes(values, rank, selection)
    row, label = np.nonzero(is_selected)
    return PredictionTable(
        row=row + 1,
        output=np.full(len(row), index),
        label=label,
        value=values[is_selected],
        rank=np.asarray(rank[is_selected], dtype=np.int64),
    )


def rank_classes(values: Floats) -> Integers:
    """Return the rank of each class in its row, from 1; the class index decides between equals.

    >>> rank_classes(np.array([[0.2, 0.5, 0.2]])).tolist()
    [[2, 1, 3]]
    """
    order = np.argsort(-values, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(1, values.shape[1] + 1)[np.newaxis, :], axis=1)
    return rank


def _select_probabilities(values: Floats, classes: int) -> Floats:
    """Return the probability of each class."""
    if values.shape[1] == 1 and classes == 2:
        return np.concatenate([1.0 - values, values], axis=1)
    if values.shape[1] < classes:
        raise ConfigError(
            f"the model's output has {count_nouns(values.shape[1], 'unit')}, but there are "
            f"{classes} class values"
        )
    # Further units belong to padding: classes without rows.
    return values[:, :classes]


def _select_classes(values: Floats, rank: Integers, selection: ClassSelection) -> Booleans:
    if selection.kind == "threshold":
        return np.asarray(values > selection.threshold)
    if selection.kind == "prob":
        return np.ones(values.shape, dtype=np.bool_)
    return np.asarray(rank <= selection.n)


def check_units(received: int, expected: int) -> None:
    """Raise ConfigError if the output of a model has another number of units."""
    if received != expected:
        raise ConfigError(
            f"the model's output has {count_nouns(received, 'unit')}; expected {expected}",
            sqlstate="42804",
        )


def reply_with_columns(literals: Iterable[str]) -> Messages:
    """Return a reply whose payload consists of array literals, one for each column."""
    columns = [memoryview(literal.encode()) for literal in literals]
    return reply({"lengths": [len(column) for column in columns]}, *columns)
