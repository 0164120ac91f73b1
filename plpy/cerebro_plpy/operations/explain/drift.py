"""How far the rows of a source lie from those that a model was trained on, by its raw columns.

The source is read as predictions read it: in the caller's session and snapshot, under the version's
formats.
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
from cerebro_plpy.operations.predict.prediction_source import (
    find_deployed_version,
    resolve_source_with_notice,
)
from cerebro_plpy.preprocessing.kinds.category import CODE
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring import drift_profile
from cerebro_plpy.preprocessing.scoring.drift_profile import Profile, stability
from cerebro_plpy.tables.models.model_versions import Version

MODULE = "drift"


def drift(db: Database, model: str | None, source: str | None) -> list[Row]:
    """A row for each raw column, that which lies farthest from before first."""
    catalog = Catalog(db, MODULE)
    version = find_deployed_version(db, MODULE, model)
    before = read_profile(db, version)
    rows = resolve_source_with_notice(catalog, version, source)
    session = LocalSession(db, **rows.settings, enable_hashagg="on", jit="off")
    edges = {key: part.edges for key, part in before.parts.items()}
    now = drift_profile.bins(session, rows.build_from_item(), rows.recipe, edges)
    return sorted(
        _compared(rows.recipe, before, now),
        key=lambda row: -math.inf if row["psi"] is None else -row["psi"],
    )


def read_profile(db: Database, version: Version) -> Profile:
    """What was kept of the training rows of a version, which its owner may have changed."""
    rows = db.peek(sql("drift.profile"), version.model, version.version)
    if not rows:
        raise InsufficientPrivilege(
            f"{MODULE} error: model {version.model!r} belongs to {version.owner!r}: only its owner "
            "may know what it was trained on.",
            hint="Ask the owner for a view or a function that tells it.",
        )
    text = rows[0]["profile"]
    if text is None:
        raise ObjectNotReady(
            f"{MODULE} error: of version {version.version} of model {version.model!r} it was not "
            "kept what its training rows were like.",
            hint="Train the model again.",
        )
    return Profile.from_json(json.loads(text), version.recipe)


def _compared(recipe: Recipe, before: Profile, now: Profile) -> Iterator[Row]:
    for feature in recipe.inputs:
        column, found = feature.column, _farthest(feature, before, now)
        first = feature.drift_parts[0]
        codes = now.parts[column, CODE] if first == CODE else None
        yield {
            "column": column,
            "kind": feature.kind,
            "training_missing": before.missing_share(column, first),
            "missing": now.missing_share(column, first),
            "psi": None if found is None else found[0],
            "part": None if found is None or len(feature.drift_parts) == 1 else found[1],
            "new_categories": codes.counts[0] / codes.rows if codes and codes.rows else None,
        }


def _farthest(feature: Feature, before: Profile, now: Profile) -> tuple[float, str] | None:
    """The largest index of the parts of a column, and which part that is."""
    keys = [(feature.column, part) for part in feature.drift_parts]
    indices = [(stability(before.parts[key].counts, now.parts[key].counts), key[1]) for key in keys]
    return max(((index, part) for index, part in indices if index is not None), default=None)
