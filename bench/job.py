"""What a contender, a process of its own, is told, and what it tells when it has done the work."""

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
    """A workload in a database, and how this contender is to do it.

    `train` and `valid` are plain tables (id, x, y); `packed` and `packed_valid` are their packed
    forms; `models` is the architecture table with initial weights, `configs` the model selection
    table.
    """

    url: str
    train: str
    valid: str
    packed: str
    packed_valid: str
    models: str
    selection: str
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
        """A session in which every statement commits."""
        session = psycopg2.connect(self.url)
        session.autocommit = True
        return session


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a contender did: loss and accuracy on the validation rows by configuration (counted from
    1), and bytes that went between processes or into files; `more` is what only this contender can
    tell."""

    scores: dict[int, tuple[float, float]]
    moved: int
    more: dict[str, Any] = field(default_factory=dict)


def write_job(job: Job, path: Path) -> None:
    """For `read_job` in another process."""
    path.write_text(json.dumps(asdict(job)))


def read_job(path: Path) -> Job:
    """What `write_job` wrote."""
    fields = json.loads(path.read_text())
    return Job(**{**fields, "configs": tuple(Config(**config) for config in fields["configs"])})


def write_result(result: Result, path: Path) -> None:
    """For `read_result` in another process."""
    path.write_text(json.dumps(asdict(result)))


def read_result(path: Path) -> Result:
    """What `write_result` wrote."""
    fields = json.loads(path.read_text())
    scores = {
        int(number): (loss, accuracy) for number, (loss, accuracy) in fields["scores"].items()
    }
    return Result(scores=scores, moved=fields["moved"], more=fields["more"])


def arguments() -> tuple[Job, Path]:
    """The job and the place of the result, of a contender that was started as `python -m MODULE JOB
    RESULT`.
    """
    return read_job(Path(sys.argv[1])), Path(sys.argv[2])
