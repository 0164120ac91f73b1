"""Run AutoGluon on a table, with its medium preset, which chooses and blends models by itself."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import numpy as np
import pandas

from bench.rivals import CLASSIFICATION, Values

AUTOGLUON = "AutoGluon"
PRESET = "medium_quality"


def is_installed() -> bool:
    """Return whether AutoGluon is installed; docs/internals/benchmarks.md names the package."""
    return find_spec("autogluon") is not None and find_spec("autogluon.tabular") is not None


def predict(
    rows: pandas.DataFrame, target: str, task: str, seconds: float, test_rows: pandas.DataFrame
) -> Values:
    """Train on rows for some seconds; return the predictions for the test rows."""
    problem_type = (
        ("binary" if rows[target].nunique() == 2 else "multiclass")
        if task == CLASSIFICATION
        else "regression"
    )
    with TemporaryDirectory(prefix="cerebro-db-bench-") as folder:
        predictor = import_module("autogluon.tabular").TabularPredictor(
            target, problem_type, path=folder, verbosity=0
        )
        predictor.fit(rows, presets=PRESET, time_limit=seconds)
        return np.asarray(predictor.predict(test_rows.drop(columns=[target])))
