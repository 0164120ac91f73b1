"""What each column of a raw table is worth to a model by name: how much worse its predictions get
without it.

The rows are read once; a trainer shuffles each column among them in its own memory, and predicts
them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Any

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import select_list
from cerebro_plpy.operations.predict.model_predictor import describe_arrays, make_predictor
from cerebro_plpy.operations.predict.predict_table import SETTINGS
from cerebro_plpy.operations.predict.prediction_source import (
    RawSource,
    find_deployed_version,
    resolve_source_with_notice,
)
from cerebro_plpy.operations.train_arguments import METRICS
from cerebro_plpy.preprocessing.learning.labels import usable_label_expression
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
MOST_ROWS, REPEATS = 5000, 5
MOST_NUMBERS = 1 << 24
"""Of all rows, which are all on their way at once."""
FALLBACKS = {CLASSIFICATION: "log_loss", REGRESSION: "rmse"}
"""For versions that were compared by what is no metric here."""


def importance(
    db: Database, gd: dict[str, Any], model: str | None, source: str | None
) -> list[Row]:
    """The importance of each column with its standard error, the largest first."""
    version = find_deployed_version(db, MODULE, model)
    rows = resolve_source_with_notice(Catalog(db, MODULE), version, source)
    if version.group_by is not None:
        db.notice(
            f"{MODULE}: of the model of all rows, not of those of groups by {version.group_by}"
        )
    found = _importances(db, gd, version, rows)
    if not found:
        db.notice(f"{MODULE}: there are no rows with a {version.target}")
    return sorted(found, key=lambda row: (row["importance"] is None, -(row["importance"] or 0.0)))


def _importances(
    db: Database, gd: dict[str, Any], version: Version, source: RawSource
) -> list[Row]:
    metric = version.metric if version.metric in METRICS[version.task] else FALLBACKS[version.task]
    rows = _rows(db, version, source)
    if not rows:
        return []
    asked = {
        "arrays": describe_arrays(version),
        "target": {"kind": "float64"},
        **question(version, metric),
    }
    teller = make_predictor(db, gd, version, request_schema.build_request("permute", asked))
    found = losses(teller, len(rows), [b"".join([row[name] for row in rows]) for name in rows[0]])
    return [
        {"column_name": each.column, **summary(of_column), "metric": metric, "rows": len(rows)}
        for each, of_column in zip(version.recipe.places, found)
    ]


def _rows(db: Database, version: Version, source: RawSource) -> list[Row]:
    """What the network is given of rows that have a target, and this; of many rows those whose
    hashes are the least.
    """
    recipe = source.recipe
    target = usable_label_expression(MODULE, source.columns, version.target, version.task)
    identity, split = _identity(db, version, source)
    needed = {version.target, *identity, *(each.column for each in recipe.inputs)}
    columns = [each for each in source.columns if each.name in needed]
    order = row_hash(naming_columns(columns, split, identity), version.seed + 1)
    number = _number(version, target)
    made = [*((each.name, each.sent) for each in network_inputs(recipe)), ("target", number)]
    statement = sql(
        "understanding.sample",
        inputs=", ".join(f"{expression.text} AS {name}" for name, expression in made),
        columns=select_list("t", (version.target, *(each.column for each in recipe.inputs))),
        table=table_with_copies(
            source.build_from_item(*(each.name for each in columns)), columns, split, identity
        ),
        target=target.text,
        order=order.text,
    )
    values = (value for _, expression in made for value in expression.values)
    most = max(1, min(MOST_ROWS, MOST_NUMBERS // recipe.room))
    with db.configured(**SETTINGS, **source.settings):
        return db.rows(statement, *values, *target.values, *order.values, most)


def _identity(db: Database, version: Version, source: RawSource) -> tuple[tuple[str, ...], Split]:
    """Return the columns that name a row, and whether copies of a row are told apart.

    They are those by which the rows of the model were put in order and packed, if the source has
    them, so that rows are shuffled alike. Of another source without a key copies are told apart:
    else all copies of a few values may be drawn.
    """
    readable = [each.name for each in source.columns if each.readable]
    for row in db.peek(sql("version.model"), version.model):
        recorded = tuple(row["identity"] or ())
        if recorded and {*recorded} <= {*readable}:
            return recorded, UNDIVIDED._replace(copies=read_split(MODULE, row["split"]).copies)
    key = tuple(each.name for each in source.columns if each.key)
    needed = {version.target, *(each.column for each in source.recipe.inputs)}
    return key or tuple(name for name in readable if name in needed), UNDIVIDED._replace(
        copies=not key
    )


def _number(version: Version, target: Expression) -> Expression:
    """The target as an array of one number; of classes the place of its class, -1 where the model
    does not know it.
    """
    if not version.classes:
        return Expression(f"cerebro.array_bytes(ARRAY[{target.text}])", target.values)
    place = f"coalesce(pg_catalog.array_position(%s::text[], {target.text}), 0) - 1"
    return Expression(
        f"cerebro.array_bytes(ARRAY[({place})::float8])", (list(version.classes), *target.values)
    )


def question(version: Version, metric: str) -> dict[str, Any]:
    """Return what is asked of a trainer about the columns of a version."""
    return {
        "columns": places(version.recipe, version.recipe.places),
        "metric": metric,
        "classes": len(version.classes),
        "repeats": REPEATS,
        "seed": version.seed,
    }


def losses(teller: Predictor, rows: int, columns: Sequence[bytes]) -> list[tuple[float, ...]]:
    """Return by how much the metric gets worse for each column, each time that it is shuffled; none
    if time was up.
    """
    try:
        teller.send_block(rows, columns)
        answer = teller.receive_block()
    finally:
        teller.end()
    return [
        tuple(map(float, filter(None, told.decode().strip("{}").split(",")))) for told in answer
    ]


def places(recipe: Recipe, parts: Sequence[Places | Patch]) -> list[list[tuple[int, ...]]]:
    """Of each of these parts of a row its positions in each of the inputs that are sent."""
    names = [each.name for each in network_inputs(recipe)]
    return [[each.inputs.get(name, ()) for name in names] for each in parts]


def summary(losses: tuple[float, ...]) -> dict[str, float | None]:
    """The mean and its standard error; NULLs where the metric is not defined, or there was no time.

    >>> summary((1.0, 3.0)), summary((1.0, float("nan")))
    ({'importance': 2.0, 'importance_error': 1.0}, {'importance': None, 'importance_error': None})
    """
    if not losses or not all(map(isfinite, losses)):
        return {"importance": None, "importance_error": None}
    return {"importance": fmean(losses), "importance_error": stdev(losses) / sqrt(len(losses))}
