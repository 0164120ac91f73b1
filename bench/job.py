"""The job and the result of a contender, which runs in a process of its own."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection

from bench.workloads import Config


@dataclass(frozen=True, kw_only=True)
class Job:
    """A workload in a database, with the settings of a contender."""

    url: str
    train: str  # a table (id, x, y)
    valid: str  # a table (id, x, y)
    packed: str
    packed_valid: str
    models: str  # the architecture table, with initial weights
    selection: str  # the model selection table
    output: str
    classes: int
    epochs: int
    segments: int
    seed: int
    configs: tuple[Config, ...]
    framework: str = "tensorflow"
    processes: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    folder: str = "."

    def connect(self) -> Connection:
        """Return a session in which every statement commits."""
        session = psycopg2.connect(self.url)
        session.autocommit = True
        return session


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a contender."""

    # Loss and accuracy on the validation rows by configuration, counted from 1.
    scores: dict[int, tuple[float, float]]
    moved_bytes: int  # bytes sent between processes or written to files
    more: dict[str, Any] = field(default_factory=dict)  # values of this contender only


def write_job(job: Job, path: Path) -> None:
    """Write a job for `read_job` in another process."""
    path.write_text(json.dumps(asdict(job)))


def read_job(path: Path) -> Job:
    """Read the job that `write_job` wrote."""
    fields = json.loads(path.read_text())
    return Job(**{**fields, "configs": tuple(Config(**config) for config in fields["configs"])})


def write_result(result: Result, path: Path) -> None:
    """Write a result for `read_result` in another process."""
    path.write_text(json.dumps(asdict(result)))


def read_result(path: Path) -> Result:
    """Read the result that `write_result` wrote."""
    fields = json.loads(path.read_text())
    scores = {
        int(number): (loss, accuracy) for number, (loss, accuracy) in fields["scores"].items()
    }
    return Result(scores=scores, moved_bytes=fields["moved_bytes"], more=fields["more"])


def parse_arguments() -> tuple[Job, Path]:
    """Return the job and the path of the result from the command line MODULE JOB RESULT."""
    return read_job(Path(sys.argv[1])), Path(sys.argv[2])
