"""Packing of the hold-out rows of a run for the version of its model that is deployed.

A version has a recipe of its own. Its rows are packed together with those of the run, so that both
models can be compared after the run even if the source has changed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from cerebro_plpy.configs.train_spec import ComparedVersion
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import describe_difference
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.errors import CerebroError, DataCorrupted, ObjectNotReady, UndefinedColumn
from cerebro_plpy.platform.state_tables import COMPARED, packed_table_name
from cerebro_plpy.preprocessing.learning.raw_table import RawTable
from cerebro_plpy.preprocessing.learning.schema_matching import have_same_inputs, match_recipe
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, Target
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.split_encoding import constants_by_input
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset, raw_rows_statement
from cerebro_plpy.tables.models import model_versions
from cerebro_plpy.tables.models.model_versions import Version

UNSUITABLE = ("22", "42804", UndefinedColumn.sqlstate)
"""Prefixes of the SQLSTATEs of errors that mean that a version cannot predict the rows."""


def find_version_to_compare(catalog: Catalog, model: str, table: RawTable) -> Version | None:
    """Return the deployed version of a model if its inputs differ from those of a new run.

    Returns:
        None as well if there is no version that can predict the target: the comparison after the
        run reports that.
    """
    version = _find_usable_version(catalog, model)
    if version is None or version.task != table.target.task:
        return None
    if version.target != table.target.column.name or have_same_inputs(version.recipe, table.recipe):
        return None
    return version


def follow_incumbent(catalog: Catalog, model: str, target: str) -> dict[str, Any]:
    """Return the table options of a new version that follow from the deployed version.

    Its inputs are read again, and its task stays if the target does.
    """
    version = _find_usable_version(catalog, model)
    if version is None:
        return {}
    return {
        "optional": tuple(feature.column for feature in version.recipe.inputs),
        "earlier_task": version.task if version.target == target else None,
    }


def _find_usable_version(catalog: Catalog, model: str) -> Version | None:
    with suppress(ObjectNotReady, DataCorrupted):
        return model_versions.find_deployed(catalog.db, catalog.module, model)
    return None


def pack_compared(
    catalog: Catalog, rows: SourceRows, table: RawTable, version: Version, run_id: int, count: int
) -> ComparedVersion:
    """Pack the validation rows a second time, with the recipe of an earlier version.

    This happens in the transaction that packs the rows of the run, over the same snapshot. If the
    version cannot predict these rows, a notice says so and nothing is packed.

    Args:
        count: number of validation rows.
    """
    control = rows.session
    difference = describe_difference(version.formats, catalog.db.caller_settings)
    if difference and rows.copies:
        catalog.db.notice(
            f"the new version is compared with version {version.version} of model "
            f"{version.model!r}, which reads rows under other formats: {difference}"
        )
    control.run(sql("features.before_compared"))
    part = table.parts[1]
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
        catalog.db.notice(
            f"version {version.version} of model {version.model!r} can no longer predict: "
            f"{error.message}"
        )
        return ComparedVersion(version.version, usable=False)
    return ComparedVersion(version.version, usable=True)


def _pack(
    catalog: Catalog, rows: SourceRows, part: RowSubset, target: Target, output: tuple[str, int]
) -> None:
    """Pack rows.

    Args:
        output: name of the packed table, and number of its rows.
    """
    control = rows.session
    raw_table = rows.name_table("rows")
    control.run(*raw_rows_statement(catalog.db.platform, part, raw_table))
    inputs = ", ".join(network_input.name for network_input in network_inputs(part.recipe))
    kind = "class" if target.task == CLASSIFICATION else "float"
    constants = json.dumps(constants_by_input(control, part.recipe))
    name, count = output
    values = (raw_table, name, inputs, kind, count, list(target.values), constants)
    control.run(sql("features.pack_compared"), values)
