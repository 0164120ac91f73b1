"""The scale of a target: it turns labels and outputs of a network into numbers of the target.

Networks compute in single precision, and this module in double precision, so that a number far from
0 keeps its digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from math import isfinite
from typing import Any

import numpy as np

from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import Header, number, record
from cerebro_trainer.wire.frames import Array

POWERS: Mapping[str, int] = {
    "mean_squared_error": 2,
    "mse": 2,
    "root_mean_squared_error": 1,
    "mean_absolute_error": 1,
    "mae": 1,
}
"""The power of the target's unit that a loss or a metric is measured in; 0 for all others."""


@dataclass(frozen=True)
class TargetScale:
    """The statistics of a target that its labels were computed with."""

    low: float
    high: float
    offset: float  # the mean less the smallest number
    deviation: float

    @classmethod
    def from_header(cls, header: Header, name: str) -> TargetScale:
        """Read the object of a request."""
        entry = record(header, name)
        scale = cls(*(number(entry, field) for field in ("low", "high", "offset", "deviation")))
        if not all(map(isfinite, astuple(scale))):
            raise RequestError(f'"{name}" must have finite numbers; received {entry!r}'[:300])
        return scale

    def restore(self, labels: Array) -> Floats:
        """Return the numbers that labels stand for, in double precision."""
        numbers: Floats = self.low + (self.offset + self.deviation * labels.astype(np.float64))
        return numbers

    def predict(self, outputs: Array) -> Floats:
        """Return the numbers that the outputs of a network predict."""
        numbers: Floats = np.minimum(np.maximum(self.restore(outputs), self.low), self.high)
        return numbers

    def convert(self, value: float, name: str) -> float:
        """Return the value of a loss or a metric of labels in the units of the target."""
        return float(value) * self.deviation ** POWERS.get(name, 0)


@dataclass(frozen=True)
class ResultUnits:
    """The scale of a target, and the names of the results that are measured in its units."""

    scale: TargetScale
    loss: str
    metrics: Sequence[str]

    @classmethod
    def from_header(cls, header: Header, compile_arguments: Mapping[str, Any]) -> ResultUnits:
        """Read the object `scale` of a request about a program."""
        metrics = [
            str(metric)
            for name in ("metrics", "weighted_metrics")
            for metric in compile_arguments.get(name) or ()
        ]
        scale = TargetScale.from_header(header, "scale")
        return cls(scale, str(compile_arguments.get("loss")), metrics)

    def convert_loss(self, loss: float) -> float:
        """Return a loss in the units of the target."""
        return self.scale.convert(loss, self.loss)

    def convert_results(self, results: dict[str, Any]) -> dict[str, Any]:
        """Return loss and metrics in the units of the target."""
        pairs = zip(results["metrics"], self.metrics, strict=True)
        metrics = [self.scale.convert(value, name) for value, name in pairs]
        return {"loss": self.convert_loss(results["loss"]), "metrics": metrics}
