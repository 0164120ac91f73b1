"""Tune LightGBM as an expert would: `python -m` this, TASK, ANSWER.

Its usual parameters come first, then random ones. Held-back rows choose the number of trees and
the best parameters, with which all rows are learned from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas

from bench.quality.holdout import TrainRows, read_train_rows, select_inputs
from bench.quality.task import CLASSIFICATION, Predict, Task, Values, answer_task
from bench.rivals import convert_dates, score

MOST_TREES = 2000
PATIENCE = 50
REFIT_SHARE = 0.25
"""The share of the time that is left for learning from all rows."""
Parameters = Mapping[str, Any]


class Trial(NamedTuple):
    """Parameters, the number of trees that predicts held-back rows best, and its score."""

    parameters: Parameters
    trees: int
    score: float


class Encoder:
    """Categories of the training rows as codes of pandas."""

    def __init__(self, rows: pandas.DataFrame) -> None:
        self._levels = {
            str(name): pandas.Index(rows[name].dropna().unique())
            for name in rows
            if not pandas.api.types.is_numeric_dtype(rows[name])
        }

    def encode(self, rows: pandas.DataFrame) -> pandas.DataFrame:
        """Return rows for LightGBM; levels that training rows lack are missing."""
        categories = {
            name: pandas.Categorical.from_codes(levels.get_indexer_for(rows[name]), levels)
            for name, levels in self._levels.items()
        }
        return rows.assign(**categories)


def train(task: Task) -> Predict:
    """Return the predictions of the best parameters."""
    rows = read_train_rows(task)
    inputs = convert_dates(rows.inputs)
    encoder = Encoder(inputs)
    classes, targets = np.unique(rows.targets, return_inverse=True)
    if task.kind != CLASSIFICATION:
        targets = rows.targets
    encoded = TrainRows(encoder.encode(inputs), targets, rows.held)
    base = choose_objective(task, len(classes))
    best = search(encoded, base, task)
    everything = lightgbm.Dataset(encoded.inputs, targets, free_raw_data=False)
    booster = lightgbm.train({**base, **best.parameters}, everything, best.trees)

    def predict(test: pandas.DataFrame) -> Values:
        outputs = booster.predict(encoder.encode(convert_dates(select_inputs(task, test))))
        if task.kind != CLASSIFICATION:
            return np.asarray(outputs)
        return np.asarray(classes[_choose_class(np.asarray(outputs))])

    return predict


def choose_objective(task: Task, classes: int) -> dict[str, Any]:
    """Return the parameters that the task alone decides."""
    common = {"verbosity": -1, "seed": task.seed}
    if task.kind != CLASSIFICATION:
        return {**common, "objective": "regression", "metric": "rmse"}
    if classes == 2:
        return {**common, "objective": "binary", "metric": "binary_logloss"}
    return {
        **common,
        "objective": "multiclass",
        "num_class": classes,
        "metric": "multi_logloss",
    }


def search(rows: TrainRows, base: Parameters, task: Task) -> Trial:
    """Return the best trial in the time of the task; the first one ends in time, too."""
    began = time.monotonic()
    deadline = began + (1 - REFIT_SHARE) * task.seconds
    random = np.random.RandomState(task.seed)
    best = try_parameters(rows, base, {}, task.kind, deadline)
    while time.monotonic() < deadline:
        trial = try_parameters(rows, base, draw_parameters(random), task.kind, deadline)
        if trial.score > best.score:
            best = trial
    return best


def try_parameters(
    rows: TrainRows, base: Parameters, parameters: Parameters, kind: str, deadline: float
) -> Trial:
    """Train until held-back rows gain no more, or until the deadline."""

    def stop_late(state: Any) -> None:
        if time.monotonic() > deadline:
            raise lightgbm.callback.EarlyStopException(
                state.iteration, state.evaluation_result_list
            )

    train_set = lightgbm.Dataset(
        rows.inputs[~rows.held], rows.targets[~rows.held], free_raw_data=False
    )
    held_set = train_set.create_valid(rows.inputs[rows.held], rows.targets[rows.held])
    booster = lightgbm.train(
        {**base, **parameters},
        train_set,
        MOST_TREES,
        valid_sets=[held_set],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False), stop_late],
    )
    trees = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
    outputs = np.asarray(booster.predict(rows.inputs[rows.held], num_iteration=trees))
    predicted = _choose_class(outputs) if kind == CLASSIFICATION else outputs
    return Trial(parameters, trees, score(kind, rows.targets[rows.held], predicted))


def draw_parameters(random: np.random.RandomState) -> dict[str, Any]:
    """Draw parameters of boosted trees."""
    return {
        "learning_rate": 10 ** random.uniform(-2, -0.7),
        "num_leaves": int(2 ** random.uniform(3, 8)),
        "min_data_in_leaf": int(2 ** random.uniform(1, 7)),
        "feature_fraction": random.uniform(0.4, 1),
        "bagging_fraction": random.uniform(0.5, 1),
        "bagging_freq": 1,
        "lambda_l2": 10 ** random.uniform(-3, 2),
        "min_data_per_group": int(2 ** random.uniform(1, 7)),
        "cat_smooth": 10 ** random.uniform(0, 2),
    }


def _choose_class(outputs: Values) -> Values:
    """Return the numbers of the most probable classes."""
    if outputs.ndim == 1:
        return (outputs > 0.5).astype(int)
    return np.asarray(outputs.argmax(axis=1))


if __name__ == "__main__":
    answer_task(train, ("lightgbm", "numpy"))
