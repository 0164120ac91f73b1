"""Tune a pipeline of scikit-learn as an expert would: `python -m` this, TASK, ANSWER."""

from __future__ import annotations

from bench.quality.holdout import read_train_rows, select_inputs
from bench.quality.task import Predict, Task, answer_task
from bench.real_tables import TABLES
from bench.rivals import convert_dates, tune


def train(task: Task) -> Predict:
    """Return the predictions of the best pipeline of the contender's kind."""
    make = TABLES[task.table].rivals[task.contender]
    rows = read_train_rows(task)
    rows = rows._replace(inputs=convert_dates(rows.inputs))
    pipeline = tune(make, rows, task.kind, task.seconds, task.seed)
    return lambda test: pipeline.predict(convert_dates(select_inputs(task, test)))


if __name__ == "__main__":
    answer_task(train, ("scikit-learn", "numpy"))
