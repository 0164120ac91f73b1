"""`cerebro.importance`: measure how much worse the predictions get without each column.

The rows are read once. A trainer shuffles each column among them in its own memory, and predicts
the rows again (permutation importance).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, stdev

from cerebro_plpy.database.call_status import EXPLAINING
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.database.sql.identifiers import select_list
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.operations.predict.model_predictor import (
    UNKNOWN_COLUMN,
    describe_arrays,
    find_unknown,
    make_predictor,
    report_unknown,
    select_expressions,
)
from cerebro_plpy.operations.predict.predict_table import SETTINGS
from cerebro_plpy.operations.predict.prediction_source import (
    RawSource,
    find_deployed_version,
    resolve_source_with_notice,
)
from cerebro_plpy.operations.train_arguments import METRICS
from cerebro_plpy.preprocessing.learning.labels import find_target, restore_labels
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, REGRESSION
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Places, Recipe
from cerebro_plpy.preprocessing.rows.split import (
    UNDIVIDED,
    Split,
    naming_columns,
    read_split,
    row_hash,
    table_with_copies,
)
from cerebro_plpy.preprocessing.scoring.occlusion_patches import Patch
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.trainer_client import request_schema
from cerebro_plpy.trainer_client.predictor import Predictor

MODULE = "importance"
MAX_ROWS = 5000
MAX_NUMBERS = 1 << 24
"""Numbers of all rows, which are sent at once."""
REPEATS = 5
TRAINER_METRICS = ("accuracy", "log_loss", "auc", "rmse", "mae", "r2")
"""Metrics that a trainer measures importances by."""
FALLBACK_METRICS = {CLASSIFICATION: "log_loss", REGRESSION: "rmse"}
"""For versions that were compared by another metric."""


def importance(
    db: Database, gd: Globals, model: str | None, source: str | None, query: str | None
) -> list[Row]:
    """Return the importance of each column with its standard error, the largest first."""
    db.status.begin_quietly(EXPLAINING)
    version = find_deployed_version(db, MODULE, model)
    catalog = Catalog(db, MODULE, takes_query=True)
    raw_source = resolve_source_with_notice(catalog, version, source, query)
    if version.group_by is not None:
        db.notice(
            f"{MODULE}: measured with the model of all rows, without those of groups by "
            f"{version.group_by}"
        )
    importances = _measure_importances(db, gd, version, raw_source)
    if not importances:
        db.notice(f"{MODULE}: no row has a value of {version.target}")
    return sorted(
        importances, key=lambda row: (row["importance"] is None, -(row["importance"] or 0.0))
    )


def _measure_importances(
    db: Database, gd: Globals, version: Version, source: RawSource
) -> list[Row]:
    rows = _read_rows(db, version, source)
    if not rows:
        return []
    fields = {
        "arrays": describe_arrays(version),
        "target": {"kind": "float64"},
        **describe_permutation(version),
    }
    predictor = make_predictor(db, gd, version, request_schema.build_request("permute", fields))
    names = [name for name in rows[0] if name != UNKNOWN_COLUMN]
    arrays = [b"".join([row[name] for row in rows]) for name in names]
    metric = choose_metric(version)
    return [
        {"column_name": part.column, **summarize(losses), "metric": metric, "rows": len(rows)}
        for part, losses in zip(version.recipe.places, measure_losses(predictor, len(rows), arrays))
    ]


def _read_rows(db: Database, version: Version, source: RawSource) -> list[Row]:
    """Read the inputs of the network and the target of rows that have one.

    Of many rows, those with the smallest hashes are read.
    """
    recipe = source.recipe
    target_column = find_target(MODULE, source.columns, version.target)
    labels = restore_labels(version.task, version.recipe, version.classes)
    labels.check_column(MODULE, target_column)
    target = labels.usable_expression(target_column)
    identity, split, seed = _choose_identity(db, version, source)
    input_columns = [feature.column for feature in recipe.inputs]
    needed = {version.target, *identity, *input_columns}
    columns = [column for column in source.columns if column.name in needed]
    from_item = source.build_from_item(*(column.name for column in columns))
    order = row_hash(naming_columns(columns, split, identity), seed + 1)
    arrays = {item.name: item.sent for item in network_inputs(recipe)}
    unknown = find_unknown(version, recipe, labels.unknown_label(target_column))
    outputs = {"target": _encode_target(version, target), UNKNOWN_COLUMN: unknown.selected}
    selected = select_expressions({**arrays, **outputs})
    statement = sql(
        "understanding.sample",
        inputs=selected.text,
        columns=select_list("t", (version.target, *input_columns)),
        table=table_with_copies(from_item, columns, split, identity),
        target=target.text,
        order=order.text,
    )
    max_rows = max(1, min(MAX_ROWS, MAX_NUMBERS // recipe.room))
    with db.configured(**SETTINGS, **source.settings):
        rows = db.rows(statement, *selected.values, *target.values, *order.values, max_rows)
    unknown.add(row[UNKNOWN_COLUMN] for row in rows)
    report_unknown(db, version, unknown)
    return rows


def _choose_identity(
    db: Database, version: Version, source: RawSource
) -> tuple[tuple[str, ...], Split, int]:
    """Return the columns that identify a row, whether copies are distinguished, and the seed.

    If the source has them, these are the columns by which the model's rows were ordered and packed,
    so that rows are shuffled in the same way. In another source without a key, copies are
    distinguished: otherwise all copies of a few values may be drawn.
    """
    readable = [column.name for column in source.columns if column.readable]
    for row in db.peek(sql("version.model"), version.model):
        recorded = tuple(row["identity"] or ())
        if recorded and {*recorded} <= {*readable}:
            copies = read_split(MODULE, row["split"]).copies
            seed = version.seed
            if version.recipe.label is not None or version.recipe.target_scale is not None:
                seed = row["split_seed"]  # earlier releases took that of the run
            return recorded, UNDIVIDED._replace(copies=copies), seed
    key = tuple(column.name for column in source.columns if column.key)
    if key:
        return key, UNDIVIDED._replace(copies=False), version.seed
    needed = {version.target, *(feature.column for feature in source.recipe.inputs)}
    identity = tuple(name for name in readable if name in needed)
    return identity, UNDIVIDED._replace(copies=True), version.seed


def _encode_target(version: Version, target: Expression) -> Expression:
    """Return the label as an array of one number; for classes, their position, -1 if unknown."""
    if not version.classes:
        scale = version.recipe.target_scale
        label = target if scale is None else scale.label_sql(target)
        return Expression(f"cerebro_internal.array_bytes(ARRAY[{label.text}])", label.values)
    position = f"coalesce(pg_catalog.array_position(%s::text[], {target.text}), 0) - 1"
    return Expression(
        f"cerebro_internal.array_bytes(ARRAY[({position})::float8])",
        (list(version.classes), *target.values),
    )


def choose_metric(version: Version) -> str:
    """Return the metric by which versions of the model are compared, or a fallback."""
    if version.metric in METRICS[version.task] and version.metric in TRAINER_METRICS:
        return version.metric
    return FALLBACK_METRICS[version.task]


def describe_permutation(version: Version) -> JsonObject:
    """Return the fields of a request that permutes the columns of a version."""
    return {
        "columns": list_positions(version.recipe, version.recipe.places),
        "metric": choose_metric(version),
        "classes": len(version.classes),
        "repeats": REPEATS,
        "seed": version.seed,
    }


def measure_losses(
    predictor: Predictor, rows: int, columns: Sequence[bytes]
) -> list[tuple[float, ...]]:
    """Return how much worse the metric gets for each column, each time that it is shuffled.

    A column has no losses if the time was not enough.
    """
    try:
        predictor.send_block(rows, columns)
        answer = predictor.receive_block()
    finally:
        predictor.end()
    return [
        tuple(map(float, filter(None, losses.decode().strip("{}").split(",")))) for losses in answer
    ]


def list_positions(recipe: Recipe, parts: Sequence[Places | Patch]) -> list[list[tuple[int, ...]]]:
    """Return the positions of parts of a row in each of the inputs that are sent."""
    names = [item.name for item in network_inputs(recipe)]
    return [[part.inputs.get(name, ()) for name in names] for part in parts]


def summarize(losses: tuple[float, ...]) -> dict[str, float | None]:
    """Return the mean of the losses and its standard error.

    They are None if the metric is not defined, or the time was not enough.

    >>> summarize((1.0, 3.0))
    {'importance': 2.0, 'importance_error': 1.0}
    >>> summarize((1.0, float("nan")))
    {'importance': None, 'importance_error': None}
    """
    if not losses or not all(map(isfinite, losses)):
        return {"importance": None, "importance_error": None}
    return {"importance": fmean(losses), "importance_error": stdev(losses) / sqrt(len(losses))}
