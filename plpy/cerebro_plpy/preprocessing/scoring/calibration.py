"""The calibration of a version: corrections of its predictions.

They are learned from held-back rows, but for the costs of mistakes, which the caller names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_plpy.preprocessing.scoring.class_costs import (
    NO_COSTS,
    Costs,
    choose_class,
    list_costs,
    read_costs,
)
from cerebro_plpy.preprocessing.scoring.error_quantiles import USUAL_LEVEL, ErrorQuantiles
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows
from cerebro_plpy.preprocessing.scoring.temperature import BOUNDS, NEUTRAL, apply_temperature


class Calibration(NamedTuple):
    """The corrections of a model's outputs; the defaults are those of a model without any."""

    errors: ErrorQuantiles | None = None  # of a regression
    temperature: float = NEUTRAL  # of the probabilities of classes
    threshold: float | None = None  # the second of two classes is predicted from it on
    costs: Costs = NO_COSTS  # decide what class is predicted, if there is no threshold

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
        return cls(errors, temperature, threshold, read_costs(value.get("costs", {})))

    @property
    def margin(self) -> float | None:
        """Half the width of the usual intervals; None if it is not known."""
        return None if self.errors is None else self.errors.find_margin(USUAL_LEVEL)

    @property
    def is_fitted(self) -> bool:
        """True if a correction was learned from rows; costs alone are not."""
        return self._replace(costs=NO_COSTS) != NO_CALIBRATION

    @property
    def corrects_classes(self) -> bool:
        """True if probabilities or predicted classes are corrected."""
        return self._replace(errors=None) != NO_CALIBRATION

    def describe(self, classes: Sequence[str]) -> dict[str, Any]:
        """Return the description for a trainer.

        Args:
            classes: of the model, in the order of its outputs.
        """
        description = self._describe_probabilities()
        if self.costs and self.threshold is None:
            named_costs = list_costs(self.costs, classes)
            description["costs"] = [named_cost._asdict() for named_cost in named_costs]
        return description

    def _describe_probabilities(self) -> dict[str, Any]:
        description: dict[str, Any] = {"temperature": self.temperature}
        if self.threshold is not None:
            description["threshold"] = self.threshold
        return description

    def to_json(self) -> str:
        """Return the calibration as JSON, without values that are defaults."""
        value: dict[str, Any] = {}
        if self.corrects_classes:
            value = self._describe_probabilities()
        if self.costs:
            value["costs"] = self.costs
        if self.errors is not None:
            value["errors"] = self.errors.to_json()
        return json.dumps(value)

    def correct(self, rows: ScoredRows) -> ScoredRows:
        """Return rows as the model predicts them."""
        if self.temperature == NEUTRAL and self.threshold is None and not self.costs:
            return rows
        return ScoredRows.collect(map(self._correct, rows))

    def _correct(self, row: ScoredRow) -> ScoredRow:
        row = apply_temperature(row, self.temperature)
        if self.threshold is not None:
            return self._decide(row, self.threshold)
        if self.costs:
            return row._replace(prediction=choose_class(row.classes, self.costs))
        return row

    def _decide(self, row: ScoredRow, threshold: float) -> ScoredRow:
        first, second = row.classes
        is_second = row.classes[second] >= threshold
        return row._replace(prediction=second if is_second else first)


NO_CALIBRATION = Calibration()
