"""The raw rows of a table or view, as a model by name reads them."""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.lock_waits import read_wait_limit, wait_for_source
from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.reading import Reading, describe_difference
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.source_query import (
    check_source_arguments,
    make_relation,
    name_query,
)
from cerebro_plpy.database.source_rows import check_readable, fenced_item, is_evaluated, read_kind
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.columns import (
    RawColumn,
    read_source_columns,
)
from cerebro_plpy.records import replace
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.granted_versions import UsableVersion
from cerebro_plpy.tables.models.model_versions import Version

FORMAT_DEPENDENT_KINDS = ("view", "foreign table", "query")
"""Kinds of sources whose rows depend on formats."""


class RawSource(NamedTuple):
    """A source that the caller's own session reads for a model, in the caller's transaction."""

    table: Relation
    columns: tuple[RawColumn, ...]
    recipe: Recipe  # as it is over these columns
    reading: Reading
    session: LocalSession
    evaluated: bool  # reading the source runs code of users

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the statement that reads the source.

        The caller's search_path is among them only if the source needs it.
        """
        settings = dict(self.reading.settings)
        if not self.evaluated:
            settings.pop("search_path", None)
        return settings

    def build_from_item(self, *extra_columns: str | None) -> str:
        """Return the FROM item with the columns of the recipe and some more.

        Args:
            extra_columns: names of columns; None is skipped.

        Raises:
            InsufficientPrivilege: the caller may not read one of the columns.
        """
        needed = {*extra_columns, *(feature.column for feature in self.recipe.inputs)}
        names = [column.name for column in self.columns if column.name in needed]
        check_readable(self.session, self.table, names)
        if not self.evaluated:
            return self.table.quoted
        return fenced_item(self.table, names)


def resolve_source(
    catalog: Catalog, version: UsableVersion, source: str | None, query: str | None = None
) -> RawSource:
    """Return the source that a call names, with the caller's rights and the version's formats.

    Args:
        query: a query in place of a source.
    """
    check_source_arguments(catalog.module, source, query)
    if query is not None:
        return _resolve_query(catalog, version, query)
    db = catalog.db
    table = catalog.resolve_input(source, "source")
    session = LocalSession(db)
    wait_for_source(db, session, table, read_wait_limit(db))
    columns = read_source_columns(session, table)
    recipe = match_recipe(catalog.module, version.recipe, columns, table.spelling)
    reading = replace(db.reading, formats=version.formats)
    return RawSource(table, columns, recipe, reading, session, is_evaluated(session, table))


def _resolve_query(catalog: Catalog, version: UsableVersion, query: str) -> RawSource:
    """Return a query as a source; its columns are those that it has at this moment."""
    db = catalog.db
    session = LocalSession(db)
    reading = replace(db.reading, formats=version.formats, temporary_first=True)
    named = name_query(db, catalog.module, query, reading.settings)
    table = make_relation(named)
    columns = read_source_columns(session, table)
    recipe = match_recipe(
        catalog.module, version.recipe, columns, table.spelling, from_item=table.quoted
    )
    return RawSource(table, columns, recipe, reading, session, evaluated=True)


def resolve_source_with_notice(
    catalog: Catalog, version: UsableVersion, source: str | None, query: str | None = None
) -> RawSource:
    """Resolve a source like `resolve_source`; a NOTICE lists formats that the session lacks."""
    raw_source = resolve_source(catalog, version, source, query)
    report_formats(catalog.db, raw_source.table, version)
    return raw_source


def report_formats(db: Database, source: Table, version: UsableVersion) -> None:
    """Send a NOTICE if rows are read under formats that differ from those of the session."""
    difference = describe_difference(version.formats, db.caller_settings)
    if difference and read_kind(LocalSession(db), source) in FORMAT_DEPENDENT_KINDS:
        db.notice(
            f"{source.spelling} is read under the formats of model {version.model!r}: {difference}"
        )


def make_reading(db: Database, source: Table, version: UsableVersion) -> Reading:
    """Return how a version reads a source; a NOTICE lists formats that the session lacks."""
    report_formats(db, source, version)
    return replace(db.reading, formats=version.formats)


def find_deployed_version(db: Database, module: str, model: str | None) -> Version:
    """Return the deployed version of a model of the caller; check that this process may read."""
    db.platform.check_process(module)
    return model_versions.get_deployed(db, module, model)
