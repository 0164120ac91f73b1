"""The check that a metric is defined on the rows that are held back, before anything is trained."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION

CLASS_METRICS = ("auc", "average_precision")
"""Metrics that compare rows of a class with rows of other classes."""
NUMBER_METRICS = {"r2": "rmse", "mape": "mae"}
"""Metrics that not all numbers have, each with a metric like it that they have."""


class Labels(NamedTuple):
    """The labels of the rows that are held back."""

    rows: int
    low: str | None
    high: str | None
    zeros: int


def check_metric(reader: Reader, module: str, table: RawTable, metric: str) -> None:
    """Check that a metric is defined on the rows that are held back.

    Raises:
        InvalidParameter: it is not.
    """
    if metric not in (*CLASS_METRICS, *NUMBER_METRICS):
        return
    labels = _read_labels(reader, table)
    if not labels.rows:
        return
    substitute = NUMBER_METRICS.get(metric, "log_loss")
    hint = f"Compare models by another metric, such as metric => '{substitute}'."
    prefix = f"{module} error: metric is {metric!r}, which is not defined"
    held_back = f"{count_nouns(labels.rows, 'row')} held back ({table.split})"
    if metric == "mape":
        if labels.zeros:
            raise InvalidParameter(
                f"{prefix} for a target of 0, as {labels.zeros} of the {held_back} have it.",
                hint=hint,
            )
    elif labels.low == labels.high:
        kind = "one class" if metric in CLASS_METRICS else "one number"
        raise InvalidParameter(
            f"{prefix} for rows of {kind}: all of the {held_back} have {labels.low!r}.",
            hint=hint,
        )


def _read_labels(reader: Reader, table: RawTable) -> Labels:
    _, part = table.parts
    scale = table.recipe.target_scale
    value = "r.label"
    zero_label = 0.0 if scale is None else scale.label(0.0)
    zero = f"r.label = '{zero_label!r}'::double precision"
    if table.target.task == CLASSIFICATION:
        value = 'r.label COLLATE pg_catalog."C"'
        zero = "false"
    statement = sql(
        "features.label_range",
        label=part.label.text,
        source=part.table,
        side=part.side.text,
        value=value,
        zero=zero,
    )
    (row,) = reader.run(statement, (*part.label.values, *part.side.values))
    labels = Labels(*row)
    if scale is None or labels.low is None or labels.high is None:
        return labels
    low, high = (f"{scale.number(float(label)):.15g}" for label in (labels.low, labels.high))
    return labels._replace(low=low, high=high)
