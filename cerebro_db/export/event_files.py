"""Export a run as event files for TensorBoard, a folder for each configuration.

The files contain metrics by epoch, and hyperparameters. They are written without TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cerebro_db.errors import UndefinedObject
from cerebro_db.export.paths import check_free
from cerebro_db.optional_imports import import_library
from cerebro_db.records import Point, Standing
from cerebro_db.run_reader import RunReader, group_by_config

SUMMARIES = "tensorboardX.summary"


def write_run(reader: RunReader, run_id: int, folder: Path, force: bool) -> list[Path]:
    """Write the folders of all configurations of a run; return their paths.

    Raises:
        UndefinedObject: the run does not exist, or has no configurations yet.
        DuplicateObject: the folder exists, and `force` is not set.
    """
    reader.progress(run_id)  # raises UndefinedObject if the run does not exist
    check_free([folder], force)
    standings = reader.leaderboard(run_id)
    points = group_by_config(reader.learning_curve(run_id))
    if not standings:
        raise UndefinedObject(
            f"run {run_id} has no configurations yet", hint="Wait until it has begun to train."
        )
    for path in folder.glob("config_*/events.out.tfevents.*"):
        path.unlink()  # TensorBoard would show files of an earlier export, too
    return [
        _write_config(folder / f"config_{standing.mst_key}", standing, points[standing.mst_key])
        for standing in standings
    ]


def _write_config(folder: Path, standing: Standing, points: Iterable[Point]) -> Path:
    """Write the event file of a configuration; return its folder."""
    writer = import_library("tensorboardX", "export").writer.FileWriter(str(folder))
    summaries = import_library(SUMMARIES, "export")
    metrics = {f"{standing.dataset}/{standing.metric}": None}
    for summary in summaries.hparams(_list_parameters(standing), metrics):
        writer.add_summary(summary)
    for point in points:
        value = math.nan if point.value is None else point.value
        summary = summaries.scalar(f"{point.dataset}/{point.name}", value)
        writer.add_summary(summary, point.epoch, point.time.timestamp())
    writer.close()
    return folder


def _list_parameters(standing: Standing) -> dict[str, Any]:
    """Return the parameters as TensorBoard takes them: numbers, booleans and texts."""
    parameters = {
        **standing.params,
        "mst_key": standing.mst_key,
        "status": standing.status,
        "template": standing.template,
    }
    return {
        name: value if isinstance(value, (bool, int, float, str)) else str(value)
        for name, value in parameters.items()
        if value is not None
    }
