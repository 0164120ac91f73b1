"""The raw rows of a table or view as a model by name sees them, and the model where more is asked
than predictions.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.reading import Reading, describe_difference
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.source_rows import check_readable, fenced_item, is_evaluated, read_kind
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.columns import RawColumn, read_columns
from cerebro_plpy.records import replace
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.granted_versions import UsableVersion
from cerebro_plpy.tables.models.model_versions import Version

CHANGING = ("view", "foreign table")
"""Kinds of sources whose rows depend on formats."""


class RawSource(NamedTuple):
    """A source as the caller's own session reads it for a model: by one statement, in its
    transaction.
    """

    table: Relation
    columns: tuple[RawColumn, ...]
    recipe: Recipe  # as it is over these columns
    reading: Reading
    session: LocalSession
    evaluated: bool  # whether code of users runs when it is read

    @property
    def settings(self) -> dict[str, str]:
        """Settings for the statement that reads it; the caller's path is among them only if the
        source needs it.
        """
        settings = self.reading.settings
        return (
            settings
            if self.evaluated
            else {n: value for n, value in settings.items() if n != "search_path"}
        )

    def rows(self, *others: str | None) -> str:
        """Return what stands in FROM for the columns of the recipe and others, of which None is
        none.

        Raises:
            InsufficientPrivilege: The caller may not read all of them.
        """
        needed = {*others, *(each.column for each in self.recipe.inputs)}
        names = [each.name for each in self.columns if each.name in needed]
        check_readable(self.session, self.table, names)
        return fenced_item(self.table, names) if self.evaluated else self.table.quoted


def raw_source(catalog: Catalog, version: UsableVersion, source: str | None) -> RawSource:
    """Return the source that a call names, as a version reads it: by the caller's rights, under its
    own formats.
    """
    db, table = catalog.db, catalog.resolve_input(source, "source")
    session = LocalSession(db)
    wait_for_source(db, session, table, read_wait_limit(db))
    columns = read_columns(session, table.oid)
    recipe = match_recipe(catalog.module, version.recipe, columns, table.spelling)
    reading = replace(db.reading, formats=version.formats)
    return RawSource(table, columns, recipe, reading, session, is_evaluated(session, table))


def raw_source_with_notice(
    catalog: Catalog, version: UsableVersion, source: str | None
) -> RawSource:
    """Return the source that a call names, as `raw_source` does; a NOTICE says which formats are
    not the session's.
    """
    rows = raw_source(catalog, version, source)
    tell_formats(catalog.db, rows.table, version)
    return rows


def tell_formats(db: Database, source: Table, version: UsableVersion) -> None:
    """Say which formats of a version differ from the session's, if the rows of a source depend on
    them.
    """
    different = describe_difference(version.formats, db.caller_settings)
    if different and read_kind(LocalSession(db), source) in CHANGING:
        db.notice(
            f"{source.spelling} is read under the formats of model {version.model!r}: {different}"
        )


def version_reading(db: Database, source: Table, version: UsableVersion) -> Reading:
    """Return how a version reads a source for the caller; a NOTICE says which formats differ from
    the session's.
    """
    tell_formats(db, source, version)
    return replace(db.reading, formats=version.formats)


def deployed_version(db: Database, module: str, model: str | None) -> Version:
    """The version of a model of the caller's that predicts; raises where its rows cannot be
    read.
    """
    db.platform.check_process(module)
    return model_versions.get_deployed(db, module, model)
