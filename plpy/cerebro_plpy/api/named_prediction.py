"""The functions of sql/61-named-prediction.sql."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cerebro_plpy.api.entry import (
    Globals,
    call,
    call_for_blocks,
    call_with_declared_path,
    get_database,
    report_errors,
)
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.named_query import ResultColumn
from cerebro_plpy.tables.models.granted_versions import ModelName

if TYPE_CHECKING:
    from cerebro_plpy.operations.predict.predict_table import Block


@report_errors
def predict_blocks(
    plpy: Any,
    gd: Globals,
    model: str | None,
    source: str | None,
    id_col: str | None,
    row_type: int | None,
    query: str | None,
    owner: str | None,
    level: float | None,
) -> Iterator[Block]:
    """Predict the rows of a source; return the blocks of predictions.

    Errors of arguments are raised before the first block: PL/Python turns an error of an iterator
    into the detail of its own error.
    """
    from cerebro_plpy.operations.predict.predict_table import RowsArguments, predict_source

    name = ModelName(model, owner)
    arguments = RowsArguments(source, id_col, row_type, query, level)
    return call_for_blocks(plpy, gd, lambda db: predict_source(db, gd, name, arguments))


@report_errors
def predict_ahead(
    plpy: Any,
    gd: Globals,
    model: str | None,
    source: str | None,
    id_col: str | None,
    row_type: int | None,
    query: str | None,
    owner: str | None,
    level: float | None,
    drawn: float | None,
) -> str:
    """Predict the rows of a source in advance; return the argument `told` of `predicted`."""
    from cerebro_plpy.operations.predict import precomputed_predictions
    from cerebro_plpy.operations.predict.predict_table import RowsArguments

    name = ModelName(model, owner)
    arguments = RowsArguments(source, id_col, row_type, query, level)
    return call(plpy, gd, lambda db: precomputed_predictions.predict_ahead(db, gd, name, arguments))


@report_errors
def predicted(
    plpy: Any,
    gd: Globals,
    told: str | None,
    model: str | None,
    source: str | None,
    id_col: str | None,
    row_type: int | None,
    query: str | None,
    owner: str | None,
    level: float | None,
) -> Iterator[Block]:
    """Return the blocks of precomputed predictions.

    No statement is run, because segments may already be at work.
    """
    from cerebro_plpy.operations.predict import precomputed_predictions

    return precomputed_predictions.read_predictions(told)


@report_errors
def predict_row(
    plpy: Any,
    gd: Globals,
    model: str | None,
    record: str | None,
    owner: str | None,
    level: float | None,
) -> str:
    """Predict one row; return the prediction as JSON."""
    from cerebro_plpy.operations.predict.predict_row import predict_record

    return call_with_declared_path(
        plpy, gd, lambda db: predict_record(db, gd, ModelName(model, owner), record, level)
    )


@report_errors
def describe_query(plpy: Any, gd: Globals, query: str) -> list[Row]:
    """Return the columns of a query under the settings of the caller, or a row with its error.

    The SQL function may not write, so that a query which locks rows is an error.
    """
    db = get_database(plpy)
    name = db.name_query(query)
    columns, error = db.describe_query(sql("reading.described", source=name))
    if error is not None:
        return [{**dict.fromkeys(ResultColumn._fields), "error": error}]
    return [{**column._asdict(), "error": None} for column in columns]


@report_errors
def sealed_version(plpy: Any, gd: Globals) -> None:
    """Load a version that the caller was granted into the trainer of this session."""
    from cerebro_plpy.operations.models.load_granted_model import fill

    call_with_declared_path(plpy, gd, lambda db: fill(db, gd))
