"""The importances of the columns of a version, over the rows that its run has packed and holds
back.

Nothing is read of the source, which may have other rows by now, or none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import quote_text
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.operations.explain.importance import (
    MAX_NUMBERS,
    MAX_ROWS,
    describe_permutation,
    measure_losses,
    summarize,
)
from cerebro_plpy.operations.predict.model_predictor import make_predictor
from cerebro_plpy.operations.train.holdout_predictions import has_packed_rows
from cerebro_plpy.operations.train.model_lineage import Lineage, read_lineage
from cerebro_plpy.packing.packed_columns import SHAPE
from cerebro_plpy.packing.packed_table import PackedTable, find_packed, read_packed
from cerebro_plpy.platform.state_tables import VALIDATION, packed_table_name
from cerebro_plpy.trainer_client import request_schema, segment_functions

MODULE = "importance"
DATASET = "held back"
LEAST_ROWS, MOST_CELLS = 250, 20_000
"""Of the sample: fewer rows where there are many columns, whatever the machine."""


class PackedRows(NamedTuple):
    """Rows as a packed table has them: the shape of each array, the target last, and its bytes."""

    shapes: Sequence[Sequence[int]]
    arrays: Sequence[bytes]


def compute_holdout_importance(
    db: Database, gd: dict[str, Any], model: str | None, version: int | None, seconds: float | None
) -> Row:
    """Return the importances of the columns of a version, and their errors, in the order of its
    features.

    NULLs for columns that are left out, and for those for which the time is not enough.
    """
    began = time.monotonic()
    db.platform.check_process(MODULE)
    made = read_lineage(db, MODULE, model, version)
    rows = _sample(db, made)
    remaining = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
    places = made.version.recipe.places
    by_column = {
        each.column: summarize(of_column)
        for each, of_column in zip(places, _losses(db, gd, made, rows, remaining))
    }
    features = [
        by_column[each.column] if each.is_input else None for each in made.version.recipe.features
    ]
    return {
        name: [row and row[name] for row in features] for name in ("importance", "importance_error")
    }


def _losses(
    db: Database, gd: dict[str, Any], made: Lineage, rows: PackedRows, seconds: float | None
) -> Sequence[tuple[float, ...]]:
    version = made.version
    request = request_schema.build_request(
        "permute", {"dataset": DATASET, **describe_permutation(version), "seconds": seconds}
    )
    trainer = segment_functions.find_spec(gd, version.backend)
    return measure_losses(
        make_predictor(db, gd, version, request, trainer, partial(_bring, gd, rows)), 0, ()
    )


def _bring(gd: dict[str, Any], rows: PackedRows) -> None:
    segment_functions.load_rows(
        segment_functions.get_trainer(gd), DATASET, rows.shapes, rows.arrays
    )


def _sample(db: Database, made: Lineage) -> PackedRows:
    """Read a share of the rows that a run holds back, from the beginning of each of their buffers.

    Rows lie in the order of their hashes, those of a group or of an addition among themselves.
    """
    session, run_id = LocalSession(db), made.version.run_id
    if not has_packed_rows(session, run_id, VALIDATION):
        raise ObjectNotReady(
            f"{MODULE} error: the packed rows of run {run_id}, of which version "
            f"{made.version.version} of model {made.version.model!r} is, were removed.",
            hint=f"SELECT * FROM cerebro.importance({quote_text(made.version.model)},"
            f" {quote_text(made.version.source)}); takes the rows of its source.",
        )
    catalog = Catalog(db, MODULE)
    table = read_packed(
        catalog, session, find_packed(catalog, packed_table_name(run_id, VALIDATION))
    )
    recipe = made.version.recipe
    most = min(
        MAX_ROWS,
        max(LEAST_ROWS, MOST_CELLS // max(1, len(recipe.inputs))),
        MAX_NUMBERS // recipe.room,
    )
    return _read(db, table, max(1, most))


def _read(db: Database, table: PackedTable, rows: int) -> PackedRows:
    names = table.independent + table.dependent
    numbers = range(1, len(names) + 1)
    statement = sql(
        "understanding.packed_sample",
        columns=", ".join(f"t.{quote_identifier(name)} AS c{n}" for n, name in zip(numbers, names)),
        rows=quote_identifier(names[0] + SHAPE),
        table=table.relation.quoted,
        parts=", ".join(
            (
                f"pg_catalog.substring(b.c{n}, 1, pg_catalog.octet_length(b.c{n}) / b.total * "
                f"b.rows) AS c{n}"
            )
            for n in numbers
        ),
    )
    buffers = db.rows(statement, min(1.0, rows / table.rows))
    count = sum(buffer["rows"] for buffer in buffers)
    shapes = [[count, *shape] for shape in (*table.input_shapes, *table.target_shapes)]
    return PackedRows(shapes, [b"".join(buffer[f"c{n}"] for buffer in buffers) for n in numbers])
