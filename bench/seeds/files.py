"""Rows to train on as files in a folder for each worker, as a machine of its own would have
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.examples import Examples
from bench.job import Job
from bench.keras_config import one_hot

ROWS = "rows"


def folder(job: Job, number: int) -> Path:
    """Where those of a worker lie."""
    return Path(job.folder) / ROWS / str(number)


def stored(job: Job, number: int, rows: Examples) -> tuple[Any, Any]:
    """Write those of a worker, with a target column for each class, and read them back."""
    own = folder(job, number)
    own.mkdir(parents=True, exist_ok=True)
    for name, array in zip(("x", "y"), one_hot(rows, job.classes), strict=True):
        np.save(own / f"{name}.npy", array)
    return np.load(own / "x.npy"), np.load(own / "y.npy")


def size(job: Job) -> int:
    """Bytes of all workers' files."""
    return sum(file.stat().st_size for file in (Path(job.folder) / ROWS).glob("*/*.npy"))
