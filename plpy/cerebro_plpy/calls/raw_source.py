"""The raw rows of a table or view as a model by name sees them, and the model where more is asked than predictions."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.caller_session import LocalSession
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import wait_for_source, wait_limit
from cerebro_plpy.features.columns import RawColumn, raw_columns
from cerebro_plpy.features.matching import matched
from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.tables import versions
from cerebro_plpy.tables.versions import Version


class RawSource(NamedTuple):
    """The table or view, its columns, and a recipe as it is over them."""

    table: Relation
    columns: tuple[RawColumn, ...]
    recipe: Recipe


def raw_source(catalog: Catalog, recipe: Recipe, source: str | None) -> RawSource:
    """What a call names as its source, in the caller's own session."""
    table = catalog.relation(source, "source")
    session = LocalSession(catalog.db)
    wait_for_source(catalog.db, session, table, wait_limit(catalog.db))
    columns = raw_columns(session, table.oid)
    return RawSource(table, columns, matched(catalog.module, recipe, columns, table.spelling))


def deployed_version(db: Database, module: str, model: str | None) -> Version:
    """The version of a model of the caller's that predicts; raises where its rows cannot be read."""
    db.platform.check_process(module)
    return versions.deployed(db, module, model)
