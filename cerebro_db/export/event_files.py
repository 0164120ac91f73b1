"""A run as event files, which TensorBoard shows: metrics by epoch, and what tells configurations
apart.

A folder for each configuration, written without TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cerebro_db.errors import UndefinedObject
from cerebro_db.export.paths import check_free
from cerebro_db.optional_imports import import_library
from cerebro_db.records import Point, Standing
from cerebro_db.run_reader import RunReader, group_by_config

SUMMARIES = "tensorboardX.summary"


def write_run(reader: RunReader, run_id: int, folder: Path, force: bool) -> list[Path]:
    """Writes the folders of all configurations of a run; UndefinedObject where there is no such
    run.
    """
    reader.progress(run_id)
    check_free([folder], force)
    board, curve = reader.leaderboard(run_id), reader.learning_curve(run_id)
    if not board:
        raise UndefinedObject(
            f"run {run_id} has no configurations yet", hint="Wait until it has begun to train."
        )
    for old in folder.glob("config_*/events.out.tfevents.*"):
        old.unlink()  # of an earlier export, which TensorBoard would show beside the new one
    points = group_by_config(curve)
    return [_write(folder, standing, points.get(standing.mst_key, [])) for standing in board]


def _write(folder: Path, standing: Standing, points: list[Point]) -> Path:
    path = folder / f"config_{standing.mst_key}"
    writer = import_library("tensorboardX", "export").writer.FileWriter(str(path))
    for summary in import_library(SUMMARIES, "export").hparams(
        _parameters(standing), {f"{standing.dataset}/{standing.metric}": None}
    ):
        writer.add_summary(summary)
    for point in points:
        value = math.nan if point.value is None else point.value
        scalar = import_library(SUMMARIES, "export").scalar(f"{point.dataset}/{point.name}", value)
        writer.add_summary(scalar, point.epoch, point.time.timestamp())
    writer.close()
    return path


def _parameters(standing: Standing) -> Mapping[str, Any]:
    """As TensorBoard takes them: numbers, truths and texts."""
    known = {
        **standing.params,
        "mst_key": standing.mst_key,
        "status": standing.status,
        "template": standing.template,
    }
    plain = {name: value for name, value in known.items() if value is not None}
    return {
        name: value if isinstance(value, (bool, int, float, str)) else str(value)
        for name, value in plain.items()
    }
