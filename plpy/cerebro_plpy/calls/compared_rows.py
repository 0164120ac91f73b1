"""The rows that a run holds back, packed as the version that predicts so far takes them.

A version has a recipe of its own. Its rows are packed together with those of the run, so that both models can be
compared when the run has ended, whatever becomes of the source until then.
"""

from __future__ import annotations

import json

from cerebro_plpy.configs.train_spec import Compared
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.platform import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import SourceRows
from cerebro_plpy.errors import DataCorrupted, DatatypeMismatch, ObjectNotReady, UndefinedColumn
from cerebro_plpy.features.encoding import network_inputs
from cerebro_plpy.features.halves import constants_by_input
from cerebro_plpy.features.matching import matched, take_alike
from cerebro_plpy.features.part import Part, raw_rows
from cerebro_plpy.features.table import RawTable
from cerebro_plpy.features.target import CLASSIFICATION, Target
from cerebro_plpy.platform.state_tables import COMPARED, data_table
from cerebro_plpy.tables import versions
from cerebro_plpy.tables.versions import Version


def version_before(catalog: Catalog, model: str, table: RawTable) -> Version | None:
    """Return the version of a model that predicts so far, if its rows differ from those of a run over a table.

    A version that cannot predict at all is not one: the comparison after the run says so.
    """
    try:
        found = versions.find_deployed(catalog.db, catalog.module, model)
    except (ObjectNotReady, DataCorrupted):
        return None
    if found is None or (found.task, found.target) != (table.target.task, table.target.column.name):
        return None
    return None if take_alike(found.recipe, table.recipe) else found


def columns_before(catalog: Catalog, model: str) -> tuple[str, ...]:
    """Return the columns that the version of a model takes which predicts so far; none if it cannot predict."""
    try:
        version = versions.find_deployed(catalog.db, catalog.module, model)
    except (ObjectNotReady, DataCorrupted):
        return ()
    return tuple(each.column for each in version.recipe.inputs) if version else ()


def pack_compared(
    catalog: Catalog, rows: SourceRows, table: RawTable, before: Version, run_id: int, count: int
) -> Compared:
    """Pack the rows that are held back, which are so many, by the recipe of an earlier version.

    It is done in the transaction in which the rows of the run are packed, and over the same reading of the source. If a
    version does not fit the columns of the table any more, the caller is told.
    """
    part = table.parts[1]
    try:
        recipe = matched(catalog.module, before.recipe, part.columns, table.relation.spelling)
    except (UndefinedColumn, DatatypeMismatch) as error:
        catalog.db.notice(
            f"the version of model {before.model!r} that predicted so far cannot any more: {error.message}"
        )
        return Compared(before.version, usable=False)
    raw, part = rows.new_table("rows"), part._replace(recipe=recipe)
    rows.session.run(*raw_rows(catalog.db.platform, part, raw))
    _pack(rows.session, part, table.target, (raw, data_table(run_id, COMPARED), count))
    return Compared(before.version, usable=True)


def _pack(control: Reader, part: Part, target: Target, of: tuple[str, str, int]) -> None:
    (raw, output, rows), inputs = of, ", ".join(each.name for each in network_inputs(part.recipe))
    kind = "class" if target.task == CLASSIFICATION else "float"
    recipes = json.dumps(constants_by_input(control, part.recipe))
    control.run(sql("features.pack_compared"), (raw, output, inputs, kind, rows, list(target.values), recipes))
