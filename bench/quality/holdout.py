"""The training rows of a contender, with the rows that it holds back for its own choices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas

from bench.quality.task import CLASSIFICATION, GROUP, HELD_OUT, TIME, Task, Validation, Values


class TrainRows(NamedTuple):
    """Inputs, targets, and for each row whether it is held back."""

    inputs: pandas.DataFrame
    targets: Values
    held: Values


def read_train_rows(task: Task) -> TrainRows:
    """Return the training rows of a task, and hold some of them back."""
    rows = task.read_train()
    targets = rows[task.target].to_numpy()
    held = hold_out(rows, targets if task.kind == CLASSIFICATION else None, task)
    return TrainRows(select_inputs(task, rows).drop(columns=[task.target]), targets, held)


def select_inputs(task: Task, rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return rows without a column of groups, which is no input as rows to come have others."""
    return rows.drop(columns=[task.validation.column]) if task.validation.kind == GROUP else rows


def hold_out(rows: pandas.DataFrame, classes: Values | None, task: Task) -> Values:
    """Return for each row whether it is held back: later rows, other groups, or random ones.

    Args:
        classes: of each of them a share of random rows is held back; None for numbers.
    """
    if task.validation.kind == TIME:
        return _hold_out_last(rows, task.validation)
    if task.validation.kind == GROUP:
        return _hold_out_groups(rows, task.validation, task.seed)
    return _hold_out_random(len(rows), classes, task.seed)


def _hold_out_last(rows: pandas.DataFrame, validation: Validation) -> Values:
    """Hold back the latest rows; rows of one time stay together."""
    times = rows[validation.column].rank(method="min", na_option="top")
    return np.asarray(times > (1 - HELD_OUT) * len(rows))


def _hold_out_groups(rows: pandas.DataFrame, validation: Validation, seed: int) -> Values:
    column = rows[validation.column]
    groups = column.unique()
    count = max(1, round(HELD_OUT * len(groups)))
    return np.asarray(column.isin(np.random.RandomState(seed).permutation(groups)[:count]))


def _hold_out_random(count: int, classes: Values | None, seed: int) -> Values:
    from sklearn.model_selection import train_test_split

    can_stratify = classes is not None and np.unique(classes, return_counts=True)[1].min() > 1
    _, held = train_test_split(
        np.arange(count),
        test_size=HELD_OUT,
        random_state=seed,
        stratify=classes if can_stratify else None,
    )
    mask = np.zeros(count, dtype=bool)
    mask[held] = True
    return mask
