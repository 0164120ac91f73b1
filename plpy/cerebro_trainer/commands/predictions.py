"""From what a model puts out to the rows of a prediction table.

Numbers are float64 from here on: a probability is shown with all the digits that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import arrays
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.wire.fields import integer, number, record, text
from cerebro_trainer.wire.frames import Message, Messages


@dataclass(frozen=True, kw_only=True)
class Want:
    """Which classes of a row to report: all, the best, the `n` best, or those above `threshold`."""

    kind: str
    n: int = 1
    threshold: float = 0.0

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Want:
        """Read the `want` object of a request."""
        want = record(header, "want")
        kind = text(want, "kind", choices=("prob", "response", "top", "threshold"))
        return cls(
            kind=kind,
            n=integer(want, "n", minimum=1) if kind == "top" else 1,
            threshold=number(want, "threshold") if kind == "threshold" else 0.0,
        )


@dataclass(frozen=True)
class Table:
    """Predictions by row (from 1), output (from 0) and rank (from 1); `label` is the class, from
    0.
    """

    row: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int64]

    def as_header(self) -> dict[str, str]:
        """The columns as PostgreSQL array literals."""
        return {
            "row": arrays.format_literal(self.row.tolist()),
            "output": arrays.format_literal(self.output.tolist()),
            "class": arrays.format_literal(self.label.tolist()),
            "value": arrays.format_literal(self.value.tolist()),
            "rank": arrays.format_literal(self.rank.tolist()),
        }


def tabulate(outputs: list[npt.NDArray[Any]], classes: Sequence[int | None], want: Want) -> Table:
    """The prediction lines of all outputs.

    `outputs[i]` has shape (rows, units...); `classes[i]` is the number of class values of that
    output, None where each unit is a class, or 0 for float targets, whose units are all reported in
    their order.
    """
    if len(outputs) != len(classes):
        raise ConfigError(
            f"the model has {len(outputs)} outputs, but there are {len(classes)} dependent columns"
        )
    parts = [
        _one_output(position, output, count, want)
        for position, (output, count) in enumerate(zip(outputs, classes, strict=True))
    ]
    joined = Table(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in Table.__dataclass_fields__
        )
    )
    order = np.lexsort((joined.rank, joined.output, joined.row))
    return Table(*(getattr(joined, name)[order] for name in Table.__dataclass_fields__))


def _one_output(position: int, output: npt.NDArray[Any], classes: int | None, want: Want) -> Table:
    values = output.astype(np.float64).reshape(len(output), -1)
    if classes != 0:
        values = values if classes is None else _probabilities(values, classes)
        rank = ranks(values)
        keep = _wanted(values, rank, want)
    else:
        rank = np.broadcast_to(np.arange(1, values.shape[1] + 1), values.shape)
        keep = np.ones(values.shape, dtype=np.bool_)
    row, label = np.nonzero(keep)
    return Table(
        row + 1,
        np.full(len(row), position),
        label,
        values[keep],
        np.asarray(rank[keep], dtype=np.int64),
    )


def ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Rank of each class in its row, from 1, highest value first; equal values by class order.

    >>> ranks(np.array([[0.2, 0.5, 0.2]])).tolist()
    [[2, 1, 3]]
    """
    order = np.argsort(-values, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(1, values.shape[1] + 1)[np.newaxis, :], axis=1)
    return rank


def _probabilities(values: npt.NDArray[np.float64], classes: int) -> npt.NDArray[np.float64]:
    if values.shape[1] == 1 and classes == 2:
        return np.concatenate([1.0 - values, values], axis=1)
    if values.shape[1] < classes:
        raise ConfigError(
            f"the model's output has {values.shape[1]} units, but there are {classes} class values"
        )
    # More units than values: targets were padded with classes that no row has.
    return values[:, :classes]


def _wanted(
    values: npt.NDArray[np.float64], rank: npt.NDArray[np.int64], want: Want
) -> npt.NDArray[np.bool_]:
    if want.kind == "threshold":
        return np.asarray(values > want.threshold)
    if want.kind == "prob":
        return np.ones(values.shape, dtype=np.bool_)
    return np.asarray(rank <= (want.n if want.kind == "top" else 1))


def as_columns(texts: Iterable[str]) -> Messages:
    """An answer of columns, which are literals of arrays."""
    found = [memoryview(text.encode()) for text in texts]
    return (Message({"ok": {"lengths": [len(column) for column in found]}}, *found),)
