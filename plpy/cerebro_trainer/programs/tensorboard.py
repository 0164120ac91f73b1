"""What a job is to write for TensorBoard. Only a superuser's job may: the function that begins it
has looked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cerebro_trainer.wire.fields import integer, record, text, typed

KINDS = ("train", "validation")


@dataclass(frozen=True)
class Callbacks:
    """A folder, and what goes into it; `datasets` are the keys of those that are shown, as train or
    validation.
    """

    folder: str
    epoch: int
    histograms: bool
    graph: bool
    metrics: tuple[str, ...]
    datasets: Mapping[str, str]

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Callbacks | None:
        """Read the `callbacks` object of a request, which most have not."""
        if header.get("callbacks") is None:
            return None
        told = record(header, "callbacks")
        datasets = record(told, "datasets")
        return cls(
            text(told, "folder"),
            integer(told, "epoch"),
            typed(told, "histograms", bool),
            typed(told, "graph", bool),
            tuple(map(str, typed(told, "metrics", list))),
            {kind: text(datasets, kind) for kind in KINDS if kind in datasets},
        )


class Board(Protocol):
    """Writes what TensorBoard shows."""

    def scalars(self, kind: str, values: Mapping[str, float], step: int) -> None:
        """Numbers of the training or the validation data."""

    def histograms(self, step: int) -> None:
        """The weights as they now are."""

    def graph(self) -> None:
        """The operations of a prediction."""
