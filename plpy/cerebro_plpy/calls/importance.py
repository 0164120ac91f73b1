"""What each column of a raw table is worth to a model by name: how much worse its predictions get without it.

The rows are read once; a trainer shuffles each column among them in its own memory, and predicts them again.
"""

from __future__ import annotations

from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Any

from cerebro_plpy.calls.predict_source import SETTINGS
from cerebro_plpy.calls.raw_source import explored_version, raw_source
from cerebro_plpy.calls.train_arguments import METRICS
from cerebro_plpy.calls.version_prediction import arrays, asker
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.features.encoding import TEXTS, Expression, network_inputs
from cerebro_plpy.features.labels import usable_label
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.features.split import Split, naming, row_hash
from cerebro_plpy.features.target import CLASSIFICATION, REGRESSION
from cerebro_plpy.tables.versions import Version
from cerebro_plpy.trainer import wire

MODULE = "importance"
MOST_ROWS, REPEATS = 5000, 5
FALLBACKS = {CLASSIFICATION: "log_loss", REGRESSION: "rmse"}
"""For versions that were compared by what is no metric here."""


def importance(db: Database, gd: dict[str, Any], model: str | None, source: str | None) -> list[Row]:
    """The importance of each column with its standard error, the largest first."""
    version = explored_version(db, MODULE, model)
    metric = version.metric if version.metric in METRICS[version.task] else FALLBACKS[version.task]
    rows = _rows(db, version, source)
    if not rows:
        db.notice(f"{MODULE}: there are no rows with a {version.target}")
        return []
    told = _losses(db, gd, version, metric, rows)
    found = [
        {"column_name": each.column, **_summary(losses), "metric": metric, "rows": len(rows)}
        for each, losses in zip(version.recipe.places, told)
    ]
    return sorted(found, key=lambda row: (row["importance"] is None, -(row["importance"] or 0.0)))


def _rows(db: Database, version: Version, source: str | None) -> list[Row]:
    """What the network is given of rows that have a target, and this; of many rows those whose hashes are the least."""
    table, columns, recipe = raw_source(Catalog(db, MODULE), version.recipe, source)
    target = usable_label(MODULE, columns, version.target, version.task)
    order = row_hash(naming(columns, Split("random", 0.0, None)), version.seed)
    number = _number(version, target)
    made = [*((each.name, each.sent) for each in network_inputs(recipe)), ("target", number)]
    statement = sql(
        "understanding.sample",
        inputs=", ".join(f"{expression.text} AS {name}" for name, expression in made),
        table=table.quoted,
        target=target.text,
        order=order.text,
    )
    values = (value for _, expression in made for value in expression.values)
    with db.configured(**SETTINGS, **TEXTS):
        return db.rows(statement, *values, *target.values, *order.values, MOST_ROWS)


def _number(version: Version, target: Expression) -> Expression:
    """The target as an array of one number; of classes the place of its class, -1 where the model does not know it."""
    if not version.classes:
        return Expression(f"cerebro.array_bytes(ARRAY[{target.text}])", target.values)
    place = f"coalesce(pg_catalog.array_position(%s::text[], {target.text}), 0) - 1"
    return Expression(f"cerebro.array_bytes(ARRAY[({place})::float8])", (list(version.classes), *target.values))


def _losses(
    db: Database, gd: dict[str, Any], version: Version, metric: str, rows: list[Row]
) -> list[tuple[float, ...]]:
    """By how much the metric gets worse for each column, each time that it is shuffled."""
    asked = {
        "arrays": arrays(version),
        "target": {"kind": "float64"},
        "columns": places(version.recipe),
        "metric": metric,
        "classes": len(version.classes),
        "repeats": REPEATS,
        "seed": version.seed,
    }
    teller = asker(db, gd, version, wire.request("permute", asked))
    try:
        teller.ask(len(rows), [b"".join([row[name] for row in rows]) for name in rows[0]])
        answer = teller.answer()
    finally:
        teller.end()
    return [tuple(map(float, told.decode().strip("{}").split(","))) for told in answer]


def places(recipe: Recipe) -> list[list[tuple[int, ...]]]:
    """Of each column its positions in each of the inputs that are sent."""
    names = [each.name for each in network_inputs(recipe)]
    return [[each.inputs.get(name, ()) for name in names] for each in recipe.places]


def _summary(losses: tuple[float, ...]) -> dict[str, float | None]:
    """The mean and its standard error; NULLs where the metric is not defined.

    >>> _summary((1.0, 3.0)), _summary((1.0, float("nan")))
    ({'importance': 2.0, 'importance_error': 1.0}, {'importance': None, 'importance_error': None})
    """
    if not all(map(isfinite, losses)):
        return {"importance": None, "importance_error": None}
    return {"importance": fmean(losses), "importance_error": stdev(losses) / sqrt(len(losses))}
