"""Log a run to MLflow: a parent run, with a nested run for each configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from cerebro_db.errors import DuplicateObject
from cerebro_db.export.mlflow_errors import translate_mlflow_errors
from cerebro_db.optional_imports import import_library
from cerebro_db.records import Point, Run, Standing
from cerebro_db.run_reader import RunReader, group_by_config

T = TypeVar("T")
EXPERIMENT = "cerebro_db"
MAX_METRICS = 1000
"""Largest number of metrics in a request."""
MAX_PARAMETERS = 100
"""Largest number of parameters in a request."""
MAX_RUNS = 50_000
"""Largest number of runs in a response."""
MAX_CHARACTERS = 6000
"""Largest length of the text of a parameter."""
STATUS = {
    "completed": "FINISHED",
    "stopped": "FINISHED",
    "failed": "FAILED",
    "cancelled": "KILLED",
    "paused": "SCHEDULED",
    "queued": "SCHEDULED",
}
"""The status in MLflow; any other one is RUNNING."""
OPEN = ("RUNNING", "SCHEDULED")


class Target(NamedTuple):
    """The destination of runs in MLflow."""

    uri: str | None  # address of the tracking server; MLflow's own settings apply if None
    experiment: str


class Experiment(NamedTuple):
    """An experiment in MLflow, and the tags that all of its runs get."""

    client: Any
    experiment_id: str
    tags: Mapping[str, str]

    def start_run(self, name: str, started_at: datetime, tags: Mapping[str, str]) -> str:
        """Create a run; return its id."""
        run = self.client.create_run(
            self.experiment_id, _to_milliseconds(started_at), {**self.tags, **tags}, name
        )
        return str(run.info.run_id)

    def end_run(self, mlflow_run: str, status: str, ended_at: datetime | None) -> None:
        """Set the status of a run, and its end if it has one."""
        mlflow_status = STATUS.get(status, "RUNNING")
        if ended_at is None or mlflow_status in OPEN:
            self.client.update_run(mlflow_run, status=mlflow_status)
        else:
            self.client.set_terminated(mlflow_run, mlflow_status, _to_milliseconds(ended_at))

    def delete_runs(self, force: bool) -> None:
        """Delete the runs of an earlier export.

        Raises:
            DuplicateObject: there are such runs, and `force` is not set.
        """
        query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in self.tags.items())
        runs = self.client.search_runs([self.experiment_id], query, max_results=MAX_RUNS)
        if runs and not force:
            raise DuplicateObject(
                f"run {self.tags['run_id']} is in the experiment already",
                hint="Name another experiment, or say --force (force=True).",
            )
        for run in runs:
            self.client.delete_run(run.info.run_id)


def find_experiment(client: Any, name: str) -> str:
    """Return the id of an experiment, which is created if it does not exist."""
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return str(client.create_experiment(name))
    return str(experiment.experiment_id)


def write_run(reader: RunReader, run_id: int, target: Target, force: bool) -> str:
    """Log a run to MLflow; return the id of the parent run.

    Raises:
        UndefinedObject: the run does not exist.
        DuplicateObject: the run was logged before, and `force` is not set.
        ObjectNotReady: MLflow refuses.
    """
    reader.progress(run_id)  # raises UndefinedObject if the run does not exist
    run = next(run for run in reader.runs() if run.run_id == run_id)
    with translate_mlflow_errors(target.uri):
        return _write_run(reader, run, target, force)


def _write_run(reader: RunReader, run: Run, target: Target, force: bool) -> str:
    run_id = run.run_id
    client = import_library("mlflow", "export").MlflowClient(tracking_uri=target.uri)
    experiment = Experiment(
        client,
        find_experiment(client, target.experiment),
        {"run_id": str(run_id), "database": _name_database(reader.engine.url)},
    )
    experiment.delete_runs(force)
    tags = {"status": run.status, "owner": run.owner}
    tags.update((f"software.{name}", version) for name, version in run.software.items())
    parent = experiment.start_run(run.name or f"run {run_id}", run.started_at, tags)
    points = group_by_config(reader.learning_curve(run_id))
    for standing in reader.leaderboard(run_id):
        _write_config(experiment, parent, run, standing, points[standing.mst_key])
    experiment.end_run(parent, run.status, run.ended_at)
    return parent


def _write_config(
    experiment: Experiment, parent: str, run: Run, standing: Standing, points: Sequence[Point]
) -> None:
    """Log a configuration as a run within the parent run."""
    entities = import_library("mlflow.entities", "export")
    tags = {
        "mst_key": str(standing.mst_key),
        "status": standing.status,
        "template": standing.template or "",
        "rank": str(standing.rank),
        "mlflow.parentRunId": parent,
    }
    times = [point.time for point in points]
    started_at = min(times, default=run.started_at)
    child = experiment.start_run(f"config {standing.mst_key}", started_at, tags)
    parameters = [
        entities.Param(name, _format_parameter(value)) for name, value in standing.params.items()
    ]
    for batch in _split(parameters, MAX_PARAMETERS):
        experiment.client.log_batch(child, params=batch)
    metrics = [
        entities.Metric(
            f"{point.dataset}/{point.name}",
            math.nan if point.value is None else point.value,
            _to_milliseconds(point.time),
            point.epoch,
        )
        for point in points
    ]
    for batch in _split(metrics, MAX_METRICS):
        experiment.client.log_batch(child, metrics=batch)
    experiment.end_run(child, standing.status, max(times, default=run.ended_at))


def _split(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[begin : begin + size] for begin in range(0, len(values), size))


def _format_parameter(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:MAX_CHARACTERS]


def _to_milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _name_database(url: sa.URL) -> str:
    return f"{url.host or ''}:{url.port or ''}/{url.database or ''}".replace("'", "")
