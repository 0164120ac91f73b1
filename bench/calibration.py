"""Measure what folds of all rows do for the calibration of small models.

A version that was calibrated by folds has the calibration of the rows held back as well. Its
predictions of test rows are measured under both.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pandas
import psycopg2

from bench import real_tables, tables
from bench.bench_server import BenchServer, Echo
from bench.quality.measurement import load_example
from bench.quality.task import CLASSIFICATION, REGRESSION
from bench.workloads import REPORT, SMALL
from cerebro_plpy.preprocessing.scoring.calibration import Calibration

NAMES = {
    SMALL: ("diabetes", "wine"),
    REPORT: ("diabetes", "economics", "hedonic", "breast_cancer", "wine", "titanic"),
}
SECONDS = 60
MEASURES = {REGRESSION: "rows in intervals of 0.9", CLASSIFICATION: "log loss"}
SMALLEST = 1e-7
"""The least probability that counts."""
TRAIN = f"""
    SELECT count(*) FROM cerebro.train('learned', %s, 'calibrated', task => %s, seed => %s,
        budget => '{SECONDS} s')"""
CALIBRATIONS = """
    SELECT calibration::text, holdout_calibration::text, validation_rows
    FROM cerebro.version_log WHERE model = 'calibrated'"""
PREDICT = """
    SELECT prediction, probabilities FROM cerebro.predict('calibrated', 'held', 'bench_row')
    ORDER BY id::integer"""


Prediction = tuple[str, Mapping[str, float]]
"""The prediction of a row, and the probabilities of classes."""
Calibrations = tuple[Calibration, Calibration]
"""By the rows held back, and by folds."""


@dataclass(frozen=True)
class CalibratedModel:
    """Test rows within intervals, or their log loss, under both calibrations of a version."""

    task: str
    rows: int
    held_back: int
    by_holdout: float | None = None
    by_folds: float | None = None  # None if folds did not calibrate the version


def measure_calibrations(
    server: BenchServer, scale: str, repeats: int, echo: Echo
) -> dict[str, list[CalibratedModel]]:
    """Return the attempts with each table, with one seed each."""
    measured: dict[str, list[CalibratedModel]] = {}
    for name in NAMES[scale]:
        for seed in range(1, repeats + 1):
            model = _measure_calibration(server.url, name, seed)
            echo(f"  {name}: {model}")
            measured.setdefault(name, []).append(model)
    return measured


def _measure_calibration(url: str, name: str, seed: int) -> CalibratedModel:
    table = real_tables.TABLES[name]
    example = load_example(name, seed)
    learned, test = example.train, example.test
    inputs = test.drop(columns=[table.target]).assign(bench_row=range(len(test)))
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        real_tables.write(session, "learned", learned)
        real_tables.write(session, "held", inputs)
        cursor.execute(TRAIN, (table.target, table.task, seed))
        cursor.execute(CALIBRATIONS)
        by_folds, by_holdout, held_back = cursor.fetchall()[0]
        cursor.execute(PREDICT)
        predictions = cursor.fetchall()
        cursor.execute("SELECT cerebro.drop_model('calibrated')")
    model = CalibratedModel(table.task, len(learned), held_back)
    if by_holdout is None:
        return model
    calibrations = Calibration.from_json(by_holdout), Calibration.from_json(by_folds)
    measure = measure_coverage
    if table.task == CLASSIFICATION:
        measure = measure_log_losses
    before, after = measure(predictions, test[table.target], calibrations)
    return replace(model, by_holdout=before, by_folds=after)


def measure_coverage(
    predictions: Sequence[Prediction], target: pandas.Series, calibrations: Calibrations
) -> list[float]:
    """Return the share of rows in their intervals of the usual level, under each calibration."""
    numbers = np.array([float(prediction) for prediction, _ in predictions])
    errors = np.abs(numbers - target.to_numpy(float))
    margins = [calibration.margin or 0.0 for calibration in calibrations]
    return [float(np.mean(errors <= margin)) for margin in margins]


def measure_log_losses(
    predictions: Sequence[Prediction], target: pandas.Series, calibrations: Calibrations
) -> list[float]:
    """Return the log loss under each calibration.

    Args:
        predictions: with probabilities under the last calibration.
    """
    classes = list(predictions[0][1])
    columns = [classes.index(label) for label in target]
    probabilities = np.array([[row[name] for name in classes] for _, row in predictions])
    logarithms = np.log(np.clip(probabilities, SMALLEST, 1)) * calibrations[-1].temperature
    losses = []
    for calibration in calibrations:
        powers = np.exp(logarithms / calibration.temperature)
        chosen = powers[np.arange(len(columns)), columns] / powers.sum(axis=1)
        losses.append(float(-np.mean(np.log(np.clip(chosen, SMALLEST, 1)))))
    return losses


def report(measured: dict[str, list[CalibratedModel]]) -> str:
    """Return a table with a row for each table of rows."""
    headings = ["table", "rows", "held back", "measure", "by rows held back", "by folds", "models"]
    rows = [_report_table(name, models) for name, models in measured.items()]
    return tables.format_table(headings, rows)


def _report_table(name: str, models: Sequence[CalibratedModel]) -> list[str]:
    folded = [model for model in models if model.by_folds is not None]
    first = models[0]
    return [
        name,
        f"{first.rows:,}",
        f"{first.held_back:,}",
        MEASURES[first.task],
        _report_mean([model.by_holdout for model in folded]),
        _report_mean([model.by_folds for model in folded]),
        f"{len(folded)} of {len(models)}",
    ]


def _report_mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.mean(known):.3f}" if known else "-"
