"""What each column of a raw table is worth to a model by name: how much worse its predictions get without it.

The rows are read once; a trainer shuffles each column among them in its own memory, and predicts them again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

from cerebro_plpy.calls.held_back import held_table
from cerebro_plpy.calls.predict_source import SETTINGS
from cerebro_plpy.calls.provenance import read_made
from cerebro_plpy.calls.raw_source import RawSource, deployed_version, raw_source, told_source
from cerebro_plpy.calls.train_arguments import METRICS
from cerebro_plpy.calls.version_prediction import arrays, asker
from cerebro_plpy.database.caller import Database, Row
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.names import columns_of
from cerebro_plpy.database.queries import sql
from cerebro_plpy.features.encoding import Expression, network_inputs
from cerebro_plpy.features.feature import LeftOut
from cerebro_plpy.features.labels import usable_label
from cerebro_plpy.features.patches import Patch
from cerebro_plpy.features.recipe import Places, Recipe
from cerebro_plpy.features.split import ALIKE, Split, naming, numbered, read_split, row_hash
from cerebro_plpy.features.table import held_back
from cerebro_plpy.features.target import CLASSIFICATION, REGRESSION
from cerebro_plpy.tables.versions import Version
from cerebro_plpy.trainer import segment, wire
from cerebro_plpy.trainer.process import TrainerSpec

MODULE = "importance"
MOST_ROWS, REPEATS = 5000, 5
MOST_NUMBERS = 1 << 24
"""Of all rows, which are all on their way at once."""
LEAST_ROWS, MOST_CELLS = 250, 20_000
"""Of the rows that a run has held back: fewer where there are many columns, whatever the machine."""
FALLBACKS = {CLASSIFICATION: "log_loss", REGRESSION: "rmse"}
"""For versions that were compared by what is no metric here."""
ALL = Expression("true")


class Sample(NamedTuple):
    """Rows that columns are shuffled among: so many on that side of a source; and, by time.monotonic(), until when.

    `split` is that of the source. Where a `trainer` was started like that already, it is used.
    """

    source: RawSource
    side: Expression
    rows: int
    split: Split = ALIKE
    trainer: TrainerSpec | None = None
    ends: float | None = None


def importance(db: Database, gd: dict[str, Any], model: str | None, source: str | None) -> list[Row]:
    """The importance of each column with its standard error, the largest first."""
    version = deployed_version(db, MODULE, model)
    rows = told_source(Catalog(db, MODULE), version, source)
    if version.group_by is not None:
        db.notice(f"{MODULE}: of the model of all rows, not of those of groups by {version.group_by}")
    # Rows without a key are told apart by the numbers of copies: else all copies of a few values may be drawn.
    sample = Sample(rows, ALL, MOST_ROWS, ALIKE._replace(copies=not any(each.key for each in rows.columns)))
    found = _importances(db, gd, version, sample)
    if not found:
        db.notice(f"{MODULE}: there are no rows with a {version.target}")
    return sorted(found, key=lambda row: (row["importance"] is None, -(row["importance"] or 0.0)))


def held_back_importance(
    db: Database, gd: dict[str, Any], model: str | None, version: int | None, seconds: float | None
) -> Row:
    """Importances by the rows that a version was not trained on, and their errors, in the order of its features.

    NULLs for columns that are left out, and for those for which the time is not enough.
    """
    began = time.monotonic()
    db.platform.check_process(MODULE)
    made, catalog = read_made(db, MODULE, model, version), Catalog(db, MODULE)
    source = raw_source(catalog, made.version, held_table(catalog, made.asked).quoted)
    split = read_split(MODULE, made.asked.split)
    rows = min(MOST_ROWS, max(LEAST_ROWS, MOST_CELLS // max(1, len(made.version.recipe.inputs))))
    sample = Sample(
        source,
        held_back(MODULE, source.table.quoted, source.columns, made.asked).side,
        rows,
        split,
        segment.trainer_spec(gd, made.version.backend),
        None if seconds is None else began + seconds,
    )
    found = {row["column_name"]: row for row in _importances(db, gd, made.version, sample)}
    features = [None if isinstance(each, LeftOut) else found.get(each.column) for each in made.version.recipe.features]
    return {name: [row and row[name] for row in features] for name in ("importance", "importance_error")}


def _importances(db: Database, gd: dict[str, Any], version: Version, sample: Sample) -> list[Row]:
    metric = version.metric if version.metric in METRICS[version.task] else FALLBACKS[version.task]
    rows = _rows(db, version, sample)
    if not rows:
        return []
    told = _losses(db, gd, version, metric, rows, sample)
    return [
        {"column_name": each.column, **_summary(losses), "metric": metric, "rows": len(rows)}
        for each, losses in zip(version.recipe.places, told)
    ]


def _rows(db: Database, version: Version, sample: Sample) -> list[Row]:
    """What the network is given of rows that have a target, and this; of many rows those whose hashes are the least."""
    source, recipe = sample.source, sample.source.recipe
    target = usable_label(MODULE, source.columns, version.target, version.task)
    needed = {version.target, *(each.column for each in recipe.inputs)}
    columns = [each for each in source.columns if each.key or each.name in needed]
    order = row_hash(naming(columns, ALIKE._replace(copies=sample.split.copies)), version.seed)
    number = _number(version, target)
    made = [*((each.name, each.sent) for each in network_inputs(recipe)), ("target", number)]
    statement = sql(
        "understanding.sample",
        inputs=", ".join(f"{expression.text} AS {name}" for name, expression in made),
        columns=columns_of("t", (version.target, *(each.column for each in recipe.inputs))),
        table=numbered(source.rows(*(each.name for each in columns)), columns, sample.split),
        target=target.text,
        side=sample.side.text,
        order=order.text,
    )
    values = (value for _, expression in made for value in expression.values)
    most = max(1, min(sample.rows, MOST_NUMBERS // recipe.room))
    with db.configured(**SETTINGS, **source.settings):
        return db.rows(statement, *values, *target.values, *sample.side.values, *order.values, most)


def _number(version: Version, target: Expression) -> Expression:
    """The target as an array of one number; of classes the place of its class, -1 where the model does not know it."""
    if not version.classes:
        return Expression(f"cerebro.array_bytes(ARRAY[{target.text}])", target.values)
    place = f"coalesce(pg_catalog.array_position(%s::text[], {target.text}), 0) - 1"
    return Expression(f"cerebro.array_bytes(ARRAY[({place})::float8])", (list(version.classes), *target.values))


def _losses(
    db: Database, gd: dict[str, Any], version: Version, metric: str, rows: list[Row], sample: Sample
) -> list[tuple[float, ...]]:
    """By how much the metric gets worse for each column, each time that it is shuffled; none where time was up."""
    asked = {
        "arrays": arrays(version),
        "target": {"kind": "float64"},
        "columns": places(version.recipe, version.recipe.places),
        "metric": metric,
        "classes": len(version.classes),
        "repeats": REPEATS,
        "seed": version.seed,
        "seconds": None if sample.ends is None else max(0.0, sample.ends - time.monotonic()),
    }
    teller = asker(db, gd, version, wire.request("permute", asked), sample.trainer)
    try:
        teller.ask(len(rows), [b"".join([row[name] for row in rows]) for name in rows[0]])
        answer = teller.answer()
    finally:
        teller.end()
    return [tuple(map(float, filter(None, told.decode().strip("{}").split(",")))) for told in answer]


def places(recipe: Recipe, parts: Sequence[Places | Patch]) -> list[list[tuple[int, ...]]]:
    """Of each of these parts of a row its positions in each of the inputs that are sent."""
    names = [each.name for each in network_inputs(recipe)]
    return [[each.inputs.get(name, ()) for name in names] for each in parts]


def _summary(losses: tuple[float, ...]) -> dict[str, float | None]:
    """The mean and its standard error; NULLs where the metric is not defined, or there was no time.

    >>> _summary((1.0, 3.0)), _summary((1.0, float("nan")))
    ({'importance': 2.0, 'importance_error': 1.0}, {'importance': None, 'importance_error': None})
    """
    if not losses or not all(map(isfinite, losses)):
        return {"importance": None, "importance_error": None}
    return {"importance": fmean(losses), "importance_error": stdev(losses) / sqrt(len(losses))}
