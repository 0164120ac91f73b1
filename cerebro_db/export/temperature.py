"""The end of an exported network of classes: it applies the temperature of the probabilities.

The steps are those of the database, in double precision. Probabilities are proportional to the
outputs of the network to the power of 1 / temperature; smaller outputs than 1e-7 count as that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_db.export.target_scale import append_operations

KEY = "temperature"
"""Key of the temperature in a description; models without one have the temperature 1."""
THRESHOLD_KEY = "threshold"
"""Key of the probability from which on the second of two classes is predicted."""
COSTS_KEY = "costs"
"""Key of the costs of mistakes; without a threshold, the expected cost decides the class."""
NAME = "calibrated"
MIN_PROBABILITY = 1e-7


def describe_calibration(calibration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a description for the calibration of a version."""
    keys = (KEY, THRESHOLD_KEY, COSTS_KEY)
    return {key: calibration[key] for key in keys if key in calibration}


def add_temperature(architecture: dict[str, Any], temperature: float) -> dict[str, Any]:
    """Return a rewritten architecture whose only output has the probabilities of a temperature."""
    operations = (
        ("Maximum", MIN_PROBABILITY),
        ("Log", None),
        ("Multiply", 1 / temperature),
        ("Softmax", None),
    )
    return append_operations(architecture, NAME, operations)
