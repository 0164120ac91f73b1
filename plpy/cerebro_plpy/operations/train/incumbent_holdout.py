"""The rows that a run holds back, packed as the version that predicts so far takes them.

A version has a recipe of its own. Its rows are packed together with those of the run, so that both
models can be compared when the run has ended, whatever becomes of the source until then.
"""

from __future__ import annotations

import json

from cerebro_plpy.configs.train_spec import ComparedVersion
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import describe_difference
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.errors import CerebroError, DataCorrupted, ObjectNotReady, UndefinedColumn
from cerebro_plpy.platform.state_tables import COMPARED, packed_table_name
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe, take_alike
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, Target
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.split_encoding import constants_by_input
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset, raw_rows_statement
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.model_versions import Version

UNSUITABLE = ("22", "42804", UndefinedColumn.sqlstate)
"""How the SQLSTATEs of errors begin that say that rows are not such as a version takes."""


def find_version_to_compare(catalog: Catalog, model: str, table: RawTable) -> Version | None:
    """Return the version of a model that predicts so far, if it takes other inputs than a run over
    a table does.

    A version that cannot predict at all is none: the comparison after the run says so.
    """
    try:
        version = model_versions.find_deployed(catalog.db, catalog.module, model)
    except (ObjectNotReady, DataCorrupted):
        return None
    if version is None or (version.task, version.target) != (
        table.target.task,
        table.target.column.name,
    ):
        return None
    return None if take_alike(version.recipe, table.recipe) else version


def read_incumbent_columns(catalog: Catalog, model: str) -> tuple[str, ...]:
    """Return the columns that the version of a model takes which predicts so far; none if it cannot
    predict.
    """
    try:
        version = model_versions.find_deployed(catalog.db, catalog.module, model)
    except (ObjectNotReady, DataCorrupted):
        return ()
    return tuple(each.column for each in version.recipe.inputs) if version else ()


def pack_compared(
    catalog: Catalog, rows: SourceRows, table: RawTable, version: Version, run_id: int, count: int
) -> ComparedVersion:
    """Pack the rows that are held back, which are so many, by the recipe of an earlier version.

    It is done in the transaction in which the rows of the run are packed, over the same reading of
    the source. If the version cannot predict these rows any more, the caller is told, and nothing
    is packed for it.
    """
    part, control = table.parts[1], rows.session
    different = describe_difference(version.formats, catalog.db.caller_settings)
    if different and rows.copies:
        catalog.db.notice(
            f"version {version.version} of model {version.model!r}, with which the new one is "
            f"compared, reads rows under other formats: {different}"
        )
    control.run(sql("features.before_compared"))
    try:
        recipe = match_recipe(catalog.module, version.recipe, part.columns, table.relation.spelling)
        _pack(
            catalog,
            rows,
            part._replace(recipe=recipe),
            table.target,
            (packed_table_name(run_id, COMPARED), count),
        )
    except CerebroError as error:
        if not error.sqlstate.startswith(UNSUITABLE):
            raise
        control.run(sql("features.without_compared"))
        reason = (
            f"the version of model {version.model!r} that predicted so far cannot any more: "
            f"{error.message}"
        )
        catalog.db.notice(reason)
        return ComparedVersion(version.version, usable=False)
    return ComparedVersion(version.version, usable=True)


def _pack(
    catalog: Catalog, rows: SourceRows, part: RowSubset, target: Target, output: tuple[str, int]
) -> None:
    """Pack rows into a table of that name, so many."""
    raw, control = rows.name_table("rows"), rows.session
    control.run(*raw_rows_statement(catalog.db.platform, part, raw))
    inputs = ", ".join(each.name for each in network_inputs(part.recipe))
    kind = "class" if target.task == CLASSIFICATION else "float"
    recipes = json.dumps(constants_by_input(control, part.recipe))
    name, count = output
    control.run(
        sql("features.pack_compared"),
        (raw, name, inputs, kind, count, list(target.values), recipes),
    )
