"""Train and predict with FLAML, in its own environment: `python -m` this, TASK, ANSWER."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.quality.holdout import select_inputs
from bench.quality.task import CLASSIFICATION, GROUP, TIME, Predict, Task, answer_task

flaml: Any = import_module("flaml")


def train(task: Task) -> Predict:
    """Return the predictions of the best model."""
    rows = task.read_train()
    column = task.validation.column
    split: dict[str, Any] = {}
    if task.validation.kind == TIME:
        rows = rows.sort_values(column, na_position="first", ignore_index=True)
        split = {"split_type": "time"}
    elif task.validation.kind == GROUP:
        split = {"split_type": "group", "groups": rows[column].to_numpy()}
    model = flaml.AutoML()
    model.fit(
        X_train=select_inputs(task, rows).drop(columns=[task.target]),
        y_train=rows[task.target].to_numpy(),
        task=task.kind,
        metric="accuracy" if task.kind == CLASSIFICATION else "rmse",
        time_budget=task.seconds,
        seed=task.seed,
        verbose=1,
        **split,
    )
    return lambda test: model.predict(select_inputs(task, test))


if __name__ == "__main__":
    answer_task(train, ("FLAML", "lightgbm", "catboost", "xgboost"))
