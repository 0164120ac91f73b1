"""The calibration of a version: corrections of predictions, learned from held-back rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_plpy.preprocessing.scoring.error_quantiles import USUAL_LEVEL, ErrorQuantiles
from cerebro_plpy.preprocessing.scoring.metrics import ScoredRow
from cerebro_plpy.preprocessing.scoring.temperature import BOUNDS, NEUTRAL, apply_temperature


class Calibration(NamedTuple):
    """The corrections of a model's outputs; the defaults are those of a model without any."""

    errors: ErrorQuantiles | None = None  # of a regression
    temperature: float = NEUTRAL  # of the probabilities of classes
    threshold: float | None = None  # the second of two classes is predicted from it on

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """Read the text of `to_json`.

        Raises:
            ValueError, TypeError, KeyError, RecursionError: it is another text.
        """
        value = json.loads(text)
        if not isinstance(value, dict):
            raise TypeError(f"it is a {type(value).__name__}")
        errors = value.get("errors")
        if errors is not None:
            errors = ErrorQuantiles.from_json(errors)
        temperature = float(value.get("temperature", NEUTRAL))
        if not BOUNDS[0] <= temperature <= BOUNDS[1]:
            raise ValueError(f"temperature is {temperature!r}")
        threshold = value.get("threshold")
        if threshold is not None:
            threshold = float(threshold)
            if not 0 <= threshold <= 1:
                raise ValueError(f"threshold is {threshold!r}")
        return cls(errors, temperature, threshold)

    @property
    def margin(self) -> float | None:
        """Half the width of the usual intervals; None if it is not known."""
        return None if self.errors is None else self.errors.find_margin(USUAL_LEVEL)

    @property
    def for_trainer(self) -> dict[str, Any] | None:
        """The description for a trainer; None if no output is corrected."""
        if self._replace(errors=None) == NO_CALIBRATION:
            return None
        entry: dict[str, Any] = {"temperature": self.temperature}
        if self.threshold is not None:
            entry["threshold"] = self.threshold
        return entry

    def to_json(self) -> str:
        """Return the calibration as JSON, without values that are defaults."""
        value = self.for_trainer or {}
        if self.errors is not None:
            value["errors"] = self.errors.to_json()
        return json.dumps(value)

    def correct(self, rows: Sequence[ScoredRow]) -> Sequence[ScoredRow]:
        """Return rows as the model predicts them."""
        if self.temperature != NEUTRAL:
            rows = [apply_temperature(row, self.temperature) for row in rows]
        if self.threshold is not None:
            rows = [self._decide(row, self.threshold) for row in rows]
        return rows

    def _decide(self, row: ScoredRow, threshold: float) -> ScoredRow:
        first, second = row.classes
        is_second = row.classes[second] >= threshold
        return row._replace(prediction=second if is_second else first)


NO_CALIBRATION = Calibration()
