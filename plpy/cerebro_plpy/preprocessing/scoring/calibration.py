"""What a version has learned about its predictions from the rows that were held back."""

from __future__ import annotations

import json
from typing import NamedTuple

from cerebro_plpy.preprocessing.scoring.error_quantiles import USUAL_LEVEL, ErrorQuantiles


class Calibration(NamedTuple):
    """The corrections of a model's outputs; the defaults are those of a model without any."""

    errors: ErrorQuantiles | None = None  # of a regression

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
        return cls(errors)

    @property
    def margin(self) -> float | None:
        """Half the width of the usual intervals; None if it is not known."""
        return None if self.errors is None else self.errors.find_margin(USUAL_LEVEL)

    def to_json(self) -> str:
        """Return the calibration as JSON, without values that are defaults."""
        value = {}
        if self.errors is not None:
            value["errors"] = self.errors.to_json()
        return json.dumps(value)


NO_CALIBRATION = Calibration()
