"""Output of a job for TensorBoard.

Only a superuser's job may write it; the SQL function that starts the job has checked that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cerebro_trainer.wire.fields import integer, record, text, typed

KINDS = ("train", "validation")


@dataclass(frozen=True)
class Callbacks:
    """The `callbacks` of a request."""

    folder: str
    epoch: int
    histograms: bool
    graph: bool
    metrics: tuple[str, ...]
    datasets: Mapping[str, str]  # dataset key by kind, of the datasets to be shown

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Callbacks | None:
        """Read the `callbacks` object of a request; most requests have none."""
        if header.get("callbacks") is None:
            return None
        callbacks = record(header, "callbacks")
        datasets = record(callbacks, "datasets")
        return cls(
            folder=text(callbacks, "folder"),
            epoch=integer(callbacks, "epoch"),
            histograms=typed(callbacks, "histograms", bool),
            graph=typed(callbacks, "graph", bool),
            metrics=tuple(map(str, typed(callbacks, "metrics", list))),
            datasets={kind: text(datasets, kind) for kind in KINDS if kind in datasets},
        )


class Board(Protocol):
    """Writer of TensorBoard's files."""

    def write_scalars(self, kind: str, values: Mapping[str, float], step: int) -> None:
        """Write numbers of the training or the validation data.

        Args:
            kind: one of KINDS.
        """

    def write_histograms(self, step: int) -> None:
        """Write the distribution of the current weights."""

    def write_graph(self) -> None:
        """Write the operations of a prediction."""
