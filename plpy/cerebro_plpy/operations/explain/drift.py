"""`cerebro.drift`: compare the raw columns of a source with the training rows of a model.

The source is read as for predictions: in the caller's session and snapshot, under the formats of
the version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import InsufficientPrivilege, ObjectNotReady
from cerebro_plpy.operations.predict.model_predictor import report_unknown
from cerebro_plpy.operations.predict.prediction_source import (
    find_deployed_version,
    resolve_source_with_notice,
)
from cerebro_plpy.preprocessing.kinds.category import CODE
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.unknown_values import count_unknown_values
from cerebro_plpy.preprocessing.scoring import drift_profile
from cerebro_plpy.preprocessing.scoring.drift_profile import Profile, stability
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.tables.models.model_versions import Version

MODULE = "drift"


def drift(db: Database, model: str | None, source: str | None, query: str | None) -> list[Row]:
    """Return a row for each raw column, the one with the largest drift first."""
    catalog = Catalog(db, MODULE, takes_query=True)
    version = find_deployed_version(db, MODULE, model)
    training = read_profile(db, version)
    raw_source = resolve_source_with_notice(catalog, version, source, query)
    recipe = raw_source.recipe
    session = LocalSession(db, **raw_source.settings, enable_hashagg="on", jit="off")
    edges = {key: part.edges for key, part in training.parts.items()}
    table = raw_source.build_from_item()
    current = drift_profile.measure_bins(session, table, recipe, edges)
    report_unknown(db, version, count_unknown_values(session, table, Expression("true"), recipe))
    return sorted(_compare_columns(recipe, training, current), key=_sort_key)


def _sort_key(row: Row) -> float:
    if row["psi"] is None:
        return -math.inf
    return -float(row["psi"])


def read_profile(db: Database, version: Version) -> Profile:
    """Read the profile of a version's training rows; its owner may have changed it.

    Raises:
        InsufficientPrivilege: the model belongs to another role.
        ObjectNotReady: the version has no profile.
    """
    rows = db.peek(sql("drift.profile"), version.model, version.version)
    if not rows:
        raise InsufficientPrivilege(
            f"{MODULE} error: model {version.model!r} belongs to {version.owner!r}: only its owner "
            "may read about its training rows.",
            hint="Ask the owner for a view or a function that shows it.",
        )
    text = rows[0]["profile"]
    if text is None:
        raise ObjectNotReady(
            f"{MODULE} error: version {version.version} of model {version.model!r} has no record "
            "of its training rows.",
            hint="Train the model again.",
        )
    return Profile.from_json(json.loads(text), version.recipe)


def _compare_columns(recipe: Recipe, training: Profile, current: Profile) -> Iterator[Row]:
    for feature in recipe.inputs:
        column = feature.column
        parts = feature.drift_parts
        index, part = _find_largest_index(feature, training, current)
        new_categories = None
        if len(parts) == 1:
            part = None
        if parts[0] == CODE and current.parts[column, CODE].rows:
            codes = current.parts[column, CODE]
            new_categories = codes.counts[0] / codes.rows
        yield {
            "column_name": column,
            "kind": feature.kind,
            "training_missing": training.missing_share(column, parts[0]),
            "missing": current.missing_share(column, parts[0]),
            "psi": index,
            "part": part,
            "new_categories": new_categories,
        }


def _find_largest_index(
    feature: Feature, training: Profile, current: Profile
) -> tuple[float | None, str | None]:
    """Return the largest stability index of a column's parts, and that part; None without any."""
    indices = []
    for part in feature.drift_parts:
        key = (feature.column, part)
        index = stability(training.parts[key].counts, current.parts[key].counts)
        if index is not None:
            indices.append((index, part))
    return max(indices, default=(None, None))
