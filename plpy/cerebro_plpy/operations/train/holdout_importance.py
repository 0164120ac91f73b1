"""Importances of the columns of a version, over the packed hold-out rows of its run.

The source is not read: by now, it may have other rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import ObjectNotReady, quote_text
from cerebro_plpy.operations.explain.importance import (
    MAX_NUMBERS,
    MAX_ROWS,
    describe_permutation,
    measure_losses,
    summarize,
)
from cerebro_plpy.operations.predict.model_predictor import make_predictor
from cerebro_plpy.operations.train.holdout_predictions import has_packed_rows
from cerebro_plpy.operations.train.model_lineage import read_lineage
from cerebro_plpy.packing.packed_columns import SHAPE
from cerebro_plpy.packing.packed_table import PackedTable, find_packed, read_packed
from cerebro_plpy.platform.state_tables import VALIDATION, packed_table_name
from cerebro_plpy.tables.models.model_versions import Version
from cerebro_plpy.trainer_client import request_schema, segment_functions

MODULE = "importance"
DATASET = "held back"
MIN_ROWS = 250
MAX_CELLS = 20_000
"""Cells of the sample. With many columns there are fewer rows, but at least `MIN_ROWS`."""


class PackedRows(NamedTuple):
    """Packed rows as arrays, the target last."""

    shapes: Sequence[Sequence[int]]
    arrays: Sequence[bytes]


def compute_holdout_importance(
    db: Database, gd: dict[str, Any], model: str | None, version: int | None, seconds: float | None
) -> Row:
    """Return the importances of the columns of a version and their standard errors.

    Args:
        seconds: available time; None for no limit.

    Returns:
        Two lists in the order of the features of the recipe. Values are None for columns that are
        left out, and for columns for which the time was not enough.
    """
    start = time.monotonic()
    db.platform.check_process(MODULE)
    evaluated = read_lineage(db, MODULE, model, version).version.before_refit
    recipe = evaluated.recipe
    rows = _sample_rows(db, evaluated)
    if seconds is not None:
        seconds = max(0.0, seconds - (time.monotonic() - start))
    losses = _measure_losses(db, gd, evaluated, rows, seconds)
    by_column = {
        place.column: summarize(column_losses)
        for place, column_losses in zip(recipe.places, losses)
    }
    summaries = [
        by_column[feature.column] if feature.is_input else None for feature in recipe.features
    ]
    return {
        name: [summary and summary[name] for summary in summaries]
        for name in ("importance", "importance_error")
    }


def _measure_losses(
    db: Database,
    gd: dict[str, Any],
    version: Version,
    rows: PackedRows,
    seconds: float | None,
) -> Sequence[tuple[float, ...]]:
    request = request_schema.build_request(
        "permute", {"dataset": DATASET, **describe_permutation(version), "seconds": seconds}
    )

    def send_rows() -> None:
        link = segment_functions.get_trainer(gd)
        segment_functions.load_rows(link, DATASET, rows.shapes, rows.arrays)

    trainer = segment_functions.find_spec(gd, version.backend)
    return measure_losses(make_predictor(db, gd, version, request, trainer, send_rows), 0, ())


def _sample_rows(db: Database, version: Version) -> PackedRows:
    """Read a sample of the hold-out rows of a run, from the beginning of each buffer.

    The rows of a group, or of an addition, are in the order of their hashes.
    """
    session = LocalSession(db)
    if not has_packed_rows(session, version.run_id, VALIDATION):
        raise ObjectNotReady(
            f"{MODULE} error: the packed rows of run {version.run_id}, of which version "
            f"{version.version} of model {version.model!r} is, were removed.",
            hint=f"SELECT * FROM cerebro.importance({quote_text(version.model)},"
            f" {quote_text(version.source)}); takes the rows of its source.",
        )
    catalog = Catalog(db, MODULE)
    name = packed_table_name(version.run_id, VALIDATION)
    table = read_packed(catalog, session, find_packed(catalog, name))
    recipe = version.recipe
    max_rows = min(
        MAX_ROWS,
        max(MIN_ROWS, MAX_CELLS // max(1, len(recipe.inputs))),
        MAX_NUMBERS // recipe.room,
    )
    return _read_rows(db, table, max(1, max_rows))


def _read_rows(db: Database, table: PackedTable, rows: int) -> PackedRows:
    names = table.independent + table.dependent
    columns = [f"c{number}" for number in range(1, len(names) + 1)]
    arrays = [f"t.{quote_identifier(name)} AS {column}" for name, column in zip(names, columns)]
    parts = [
        f"pg_catalog.substring(b.{column}, 1, pg_catalog.octet_length(b.{column}) / b.total * "
        f"b.rows) AS {column}"
        for column in columns
    ]
    statement = sql(
        "understanding.packed_sample",
        columns=", ".join(arrays),
        rows=quote_identifier(names[0] + SHAPE),
        table=table.relation.quoted,
        parts=", ".join(parts),
    )
    buffers = db.rows(statement, min(1.0, rows / table.rows))
    count = sum(buffer["rows"] for buffer in buffers)
    shapes = [[count, *shape] for shape in (*table.input_shapes, *table.target_shapes)]
    return PackedRows(
        shapes, [b"".join(buffer[column] for buffer in buffers) for column in columns]
    )
