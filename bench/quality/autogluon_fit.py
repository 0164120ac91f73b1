"""Train and predict with AutoGluon, in its own environment: `python -m` this, TASK, ANSWER.

The contender's name ends with the preset. AutoGluon chooses and blends models by itself.
"""

from __future__ import annotations

from importlib import import_module
from tempfile import mkdtemp
from typing import Any

from bench.quality.task import CLASSIFICATION, GROUP, TIME, Predict, Task, answer_task

tabular: Any = import_module("autogluon.tabular")
STRUCTURES = {TIME: "time_on", GROUP: "group_on"}


def train(task: Task) -> Predict:
    """Return the predictions of the best model."""
    rows = task.read_train()
    problem_type = "regression"
    if task.kind == CLASSIFICATION:
        problem_type = "binary" if rows[task.target].nunique() == 2 else "multiclass"
    structure = None
    if task.validation.kind in STRUCTURES:
        structure = {STRUCTURES[task.validation.kind]: task.validation.column}
    folder = mkdtemp(prefix="autogluon-", dir=".")
    predictor = tabular.TabularPredictor(task.target, problem_type, path=folder, verbosity=1)
    predictor.fit(
        rows,
        presets=task.contender.split()[-1],
        time_limit=task.seconds,
        validation_structure=structure,
    )
    return lambda test: predictor.predict(test).to_numpy()


if __name__ == "__main__":
    answer_task(
        train,
        ("autogluon.tabular", "lightgbm", "catboost", "xgboost-cpu", "torch", "fastai"),
    )
