"""Training rows as files in a folder for each worker, as on a machine of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.examples import Examples
from bench.job import Job
from bench.keras_config import encode_one_hot

ROWS = "rows"


def find_folder(job: Job, number: int) -> Path:
    """Return the folder of a worker's files."""
    return Path(job.folder) / ROWS / str(number)


def store_rows(job: Job, number: int, rows: Examples) -> tuple[Any, Any]:
    """Write the rows of a worker, with one-hot targets, and read them back."""
    worker_folder = find_folder(job, number)
    worker_folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(("x", "y"), encode_one_hot(rows, job.classes), strict=True):
        np.save(worker_folder / f"{name}.npy", array)
    return np.load(worker_folder / "x.npy"), np.load(worker_folder / "y.npy")


def measure_files(job: Job) -> int:
    """Return the bytes of all workers' files."""
    return sum(file.stat().st_size for file in (Path(job.folder) / ROWS).glob("*/*.npy"))
