"""The task that each contender gets, and its answer; a contender is a process of its own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas

from bench.quality.frames import read_frame

CLASSIFICATION = "classification"
REGRESSION = "regression"
RANDOM = "random"
TIME = "time"
GROUP = "group"
HELD_OUT = 0.2
"""The share of the training rows that a contender holds back for its own choices."""
Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Validation:
    """The way in which rows are held back: what a user knows of the rows to come."""

    kind: str = RANDOM  # RANDOM, TIME (rows to come are later) or GROUP (they are of other groups)
    column: str = ""  # the column of the time or the group


RANDOM_ROWS = Validation()


@dataclass(frozen=True, kw_only=True)
class Task:
    """The rows of a table, and the time to learn from them."""

    table: str
    contender: str
    target: str
    kind: str  # CLASSIFICATION or REGRESSION
    seconds: float
    seed: int
    url: str  # the database; empty for contenders without one
    train: str  # file of the training rows
    test: str  # file of the test rows, without their targets
    validation: Validation = RANDOM_ROWS
    types: dict[str, str] = field(default_factory=dict)  # types that only a user can know

    def read_train(self) -> pandas.DataFrame:
        """Return the training rows with their targets; classes are texts."""
        return read_frame(Path(self.train))

    def read_test(self) -> pandas.DataFrame:
        """Return the inputs of the test rows."""
        return read_frame(Path(self.test))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The predictions of a contender for the test rows, and the time that they took."""

    predictions: Sequence[Any]
    train_seconds: float
    predict_seconds: float
    more: dict[str, Any] = field(default_factory=dict)  # values of this contender only


Predict = Callable[[pandas.DataFrame], Any]


def answer_task(train: Callable[[Task], Predict], packages: Sequence[str]) -> None:
    """Do the task that the command line MODULE TASK ANSWER names, in a process of its own.

    Args:
        train: learns from the training rows; returns the function that predicts rows.
        packages: distributions whose versions go into the answer.
    """
    task_path, answer_path = (Path(argument) for argument in sys.argv[1:3])
    task = read_task(task_path)
    test = task.read_test()
    began = time.perf_counter()
    predict = train(task)
    trained = time.perf_counter()
    predictions = np.asarray(predict(test))
    predicted = time.perf_counter()
    answer = Answer(
        predictions=predictions.tolist(),
        train_seconds=trained - began,
        predict_seconds=predicted - trained,
        more={"versions": {name: find_version(name) for name in packages}},
    )
    write_answer(answer, answer_path)


def find_version(name: str) -> str | None:
    """Return the version of an installed distribution; None if it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def write_task(task: Task, path: Path) -> None:
    """Write a task for `read_task` in another process."""
    path.write_text(json.dumps(asdict(task)))


def read_task(path: Path) -> Task:
    """Read the task that `write_task` wrote."""
    fields = json.loads(path.read_text())
    return Task(**{**fields, "validation": Validation(**fields["validation"])})


def write_answer(answer: Answer, path: Path) -> None:
    """Write an answer for `read_answer` in another process."""
    path.write_text(json.dumps(asdict(answer)))


def read_answer(path: Path) -> Answer:
    """Read the answer that `write_answer` wrote."""
    return Answer(**json.loads(path.read_text()))
