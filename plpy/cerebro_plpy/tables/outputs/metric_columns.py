"""The metrics of a configuration as columns of output tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Optional

from cerebro_plpy.configs.architecture.architecture import check_architecture, read_architecture
from cerebro_plpy.configs.params import output_losses
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.custom_functions import ANY_FUNCTIONS
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.tables.outputs.logged_run import LoggedRun, read_metrics

Series = Optional[list[Optional[float]]]
"""Values after each evaluated epoch; NULL if there are none."""


class DatasetMetrics(NamedTuple):
    """The metric and the loss over one data set; NULL if they were not computed."""

    final_metric: float | None
    final_loss: float | None
    metrics: Series
    losses: Series


class MetricColumns(NamedTuple):
    """The columns with the metrics of a configuration."""

    elapsed: list[float] | None  # seconds from the start of the run to each evaluation
    metrics_type: list[str] | None
    loss_type: str
    training: DatasetMetrics
    validation: DatasetMetrics

    def list_info(self, config: Row, kilobytes: float | None) -> list[object]:
        """Return the columns of an info table in order, up to the metrics."""
        return [
            config["mst_key"],
            config["model_id"],
            config["compile_params"],
            config["fit_params"],
            kilobytes,
            self.elapsed,
            self.metrics_type,
            self.loss_type,
            *self.training,
            *self.validation,
        ]


def read_metric_columns(
    db: Database, run: LoggedRun, config: Row, architecture: str
) -> MetricColumns:
    """Return the metrics of a configuration.

    Final values are those of the stored model: of the best epoch if its state was kept, else of
    the last epoch.
    """
    compile_params = parse_compile_params(config["compile_params"], ANY_FUNCTIONS)
    rows = read_metrics(db, run.run_id, config)
    names = check_architecture(read_architecture(architecture)).output_names
    metrics = output_losses.name_metrics(compile_params.metrics, names, run.spec.source.dependent)
    metric = next((metric.logged_name for metric in metrics), None)
    elapsed = {row["epoch"]: row["elapsed"] for row in select_ranking_losses(rows)}
    training, validation = (
        _collect_values(
            [row for row in rows if row["dataset"] == dataset],
            metric,
            config["best_epoch"],
            elapsed,
        )
        for dataset in ("training", "validation")
    )
    return MetricColumns(
        elapsed=list(elapsed.values()) or None,
        metrics_type=output_losses.order_metrics(compile_params.metrics_as_written, names) or None,
        loss_type=compile_params.loss_text,
        training=training,
        validation=validation,
    )


def select_ranking_losses(rows: Sequence[Row]) -> list[Row]:
    """Return the validation losses, else the training losses: one for each evaluation."""
    validation_rows = [row for row in rows if row["dataset"] == "validation"]
    return [row for row in validation_rows or rows if row["name"] == "loss"]


def _collect_values(
    rows: Sequence[Row], metric: str | None, best_epoch: int | None, epochs: Collection[int]
) -> DatasetMetrics:
    metric_rows = [row for row in rows if row["name"] == metric]
    loss_rows = [row for row in rows if row["name"] == "loss"]
    return DatasetMetrics(
        final_metric=find_final_value(metric_rows, best_epoch),
        final_loss=find_final_value(loss_rows, best_epoch),
        metrics=_list_by_epoch(metric_rows, epochs),
        losses=_list_by_epoch(loss_rows, epochs),
    )


def _list_by_epoch(rows: Sequence[Row], epochs: Collection[int]) -> Series:
    """Return the value after each of the epochs; None without any values."""
    if not rows:
        return None
    values = {row["epoch"]: row["value"] for row in rows}
    return [values.get(epoch) for epoch in epochs]


def find_final_value(rows: Sequence[Row], best_epoch: int | None) -> float | None:
    """Return the last value, up to the best epoch if its state was kept; None without any."""
    values = [row["value"] for row in rows if best_epoch is None or row["epoch"] <= best_epoch]
    return next(reversed(values), None)
