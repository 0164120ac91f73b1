"""A run in MLflow: a parent run for it, and within it a run for each configuration with parameters
and metrics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from cerebro_db.errors import DuplicateObject
from cerebro_db.optional_imports import import_library
from cerebro_db.records import Point, Run, Standing
from cerebro_db.run_reader import RunReader, group_by_config

T = TypeVar("T")
EXPERIMENT = "cerebro_db"
ENTITIES = "mlflow.entities"
MOST_METRICS, MOST_PARAMETERS, MOST_RUNS, LONGEST = 1000, 100, 50_000, 6000
"""Of one request or answer, and of the text of a parameter."""
STATUS = {
    "completed": "FINISHED",
    "stopped": "FINISHED",
    "failed": "FAILED",
    "cancelled": "KILLED",
    "paused": "SCHEDULED",
    "queued": "SCHEDULED",
}
"""In the words of MLflow; all else goes on or waits."""
OPEN = ("RUNNING", "SCHEDULED")


class Target(NamedTuple):
    """Where runs are tracked; without an address it is where MLflow's own settings say."""

    uri: str | None
    experiment: str


class Place(NamedTuple):
    """An experiment of MLflow, and the tags that all runs have there."""

    client: Any
    experiment: str
    tags: Mapping[str, str]

    def begin(self, name: str, at: datetime, tags: Mapping[str, str]) -> str:
        """A new run; its id."""
        run = self.client.create_run(
            self.experiment, _milliseconds(at), {**self.tags, **tags}, name
        )
        return str(run.info.run_id)

    def end(self, run: str, status: str, at: datetime | None) -> None:
        """Says of a run what has become of it."""
        known = STATUS.get(status, "RUNNING")
        if at is None or known in OPEN:
            self.client.update_run(run, status=known)
        else:
            self.client.set_terminated(run, known, _milliseconds(at))

    def clear(self, force: bool) -> None:
        """Deletes what an earlier export has left there, as far as that is meant."""
        wanted = " and ".join(f"tags.`{name}` = '{value}'" for name, value in self.tags.items())
        old = self.client.search_runs([self.experiment], wanted, max_results=MOST_RUNS)
        if old and not force:
            raise DuplicateObject(
                f"run {self.tags['run_id']} is in the experiment already",
                hint="Name another experiment, or say --force (force=True).",
            )
        for each in old:
            self.client.delete_run(each.info.run_id)


def write_run(reader: RunReader, run_id: int, target: Target, force: bool) -> str:
    """Logs a run; the id of the parent in MLflow. What was logged of it before is deleted there, if
    `force` says so.
    """
    reader.progress(run_id)  # which says it where there is none
    run = next(each for each in reader.runs() if each.run_id == run_id)
    client = import_library("mlflow", "export").MlflowClient(tracking_uri=target.uri)
    found = client.get_experiment_by_name(target.experiment)
    experiment = (
        client.create_experiment(target.experiment) if found is None else found.experiment_id
    )
    place = Place(
        client, experiment, {"run_id": str(run_id), "database": _database(reader.engine.url)}
    )
    place.clear(force)
    software = {f"software.{name}": version for name, version in run.software.items()}
    told = {"status": run.status, "owner": run.owner, **software}
    parent = place.begin(run.name or f"run {run_id}", run.started_at, told)
    curves = group_by_config(reader.learning_curve(run_id))
    for standing in reader.leaderboard(run_id):
        points = curves.get(standing.mst_key, [])
        _write(place, parent, run, standing, points)
    place.end(parent, run.status, run.ended_at)
    return parent


def _write(
    place: Place, parent: str, run: Run, standing: Standing, points: Sequence[Point]
) -> None:
    entities = import_library(ENTITIES, "export")
    own = {
        "mst_key": str(standing.mst_key),
        "status": standing.status,
        "template": standing.template or "",
    }
    told = {**own, "rank": str(standing.rank), "mlflow.parentRunId": parent}
    began = min((point.time for point in points), default=run.started_at)
    child = place.begin(f"config {standing.mst_key}", began, told)
    for part in _parts(
        [entities.Param(key, _text(value)) for key, value in standing.params.items()],
        MOST_PARAMETERS,
    ):
        place.client.log_batch(child, params=part)
    metrics = [
        entities.Metric(
            f"{point.dataset}/{point.name}",
            _number(point.value),
            _milliseconds(point.time),
            point.epoch,
        )
        for point in points
    ]
    for part in _parts(metrics, MOST_METRICS):
        place.client.log_batch(child, metrics=part)
    place.end(child, standing.status, max((point.time for point in points), default=run.ended_at))


def _parts(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[begin : begin + size] for begin in range(0, len(values), size))


def _text(value: object) -> str:
    return (value if isinstance(value, str) else json.dumps(value))[:LONGEST]


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _database(url: sa.URL) -> str:
    return f"{url.host or ''}:{url.port or ''}/{url.database or ''}".replace("'", "")
