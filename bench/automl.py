"""AutoGluon over a table, where it is installed: its medium preset, which chooses models and blends
them by itself.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import numpy as np
import pandas

from bench.rivals import CLASSIFICATION, Values

AUTOGLUON = "AutoGluon"
PRESET = "medium_quality"


def installed() -> bool:
    """Whether it can be compared with; docs/benchmarks.md says what to install."""
    return find_spec("autogluon") is not None and find_spec("autogluon.tabular") is not None


def predictions(
    rows: pandas.DataFrame, target: str, task: str, seconds: float, others: pandas.DataFrame
) -> Values:
    """What it says of other rows when it has learned from these for so many seconds."""
    kind = (
        ("binary" if rows[target].nunique() == 2 else "multiclass")
        if task == CLASSIFICATION
        else "regression"
    )
    with TemporaryDirectory(prefix="cerebro-db-bench-") as folder:
        made = import_module("autogluon.tabular").TabularPredictor(
            target, kind, path=folder, verbosity=0
        )
        made.fit(rows, presets=PRESET, time_limit=seconds)
        return np.asarray(made.predict(others.drop(columns=[target])))
